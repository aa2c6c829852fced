import pytest
from tests.docs.run_page import run_page


def test_blocks_share_names_and_outputs_are_kept_apart() -> None:
    blocks = [("python", 3, ["x = 2"]), ("python", 7, ["print(x)"]), ("console", 9, ["echo a", "echo b"])]
    assert run_page("page.md", blocks) == [[""], ["2\n"], ["a\n", "b\n"]]


def test_the_exit_code_of_a_command_is_that_of_the_next() -> None:
    failing = "echo wrong >&2; exit 4"
    assert run_page("page.md", [("console", 1, [failing, "echo $?"])]) == [["wrong\n", "4\n"]]


def test_a_failing_command_ends_the_page() -> None:
    with pytest.raises(RuntimeError, match="line 1: false ended with 1"):
        run_page("page.md", [("console", 1, ["false", "echo b"])])


def test_a_traceback_names_the_line_of_the_page() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        run_page("page.md", [("python", 5, ["1 / 0"])])
    assert (raised.traceback[-1].path, raised.traceback[-1].lineno) == ("page.md", 4)


def test_progress_is_no_output() -> None:
    progress = "echo '[0.0s] measuring' >&2; echo error >&2; exit 1"
    assert run_page("page.md", [("console", 1, [progress, "echo $?"])])[0][0] == "error\n"
