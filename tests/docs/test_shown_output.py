import pytest
from tests.docs.pages import Command, code_blocks, commands
from tests.docs.shown_output import is_shown

TABLE = """\
model  toolchain    median latency  ratio to the best       max error  chosen
mnist  native              84.0 us  1.000                     4.8e-07  yes
mnist  onnxruntime         0.11 ms  1.321 (1.084 to 1.659)    5.2e-07
"""
OTHER = """\
model  toolchain    median latency  ratio to the best        max error  chosen
mnist  onnxruntime         97.0 us  1.000                      5.2e-07  yes
mnist  native               101 us  1.041 (0.984 to 1.1)       4.8e-07
"""


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\nb\n", "a\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nd\n", True),
        ("a\n...\n", "b\n", False),
        ("size ... bytes\n", "size 12 bytes\n", True),
        ("size ... bytes\n", "size 12 words\n", False),
        ("a.c\n", "abc\n", False),
        ("1 of 2\n", "1 of 3\n", False),
    ],
)
def test_lines_are_equal_but_for_dots(expected: str, actual: str, same: bool) -> None:
    assert is_shown(expected, actual, has_figures=False) is same


def test_figures_and_ranks_may_differ() -> None:
    assert is_shown(TABLE, OTHER, has_figures=True)
    assert not is_shown(TABLE, OTHER, has_figures=False)


def test_a_candidate_may_be_too_slow_for_a_race() -> None:
    slow = OTHER.replace("101 us  1.041 (0.984 to 1.1) ", "     -  slow            ")
    assert is_shown(TABLE, slow, has_figures=True)


def test_signs_of_figures_may_differ_and_exit_codes_may_not() -> None:
    assert is_shown("is -0.32, expected 1.1\n", "is 2.5, expected -7e-3\n", has_figures=True)
    assert is_shown("4\n", "4\n", has_figures=True)
    assert not is_shown("4\n", "0\n", has_figures=True)


@pytest.mark.parametrize("old", ["onnxruntime", "max error", "native", "(0.984 to 1.1)"])
def test_words_of_figures_may_not_differ(old: str) -> None:
    changed = OTHER.replace(old, "wrong")
    assert not is_shown(TABLE, changed, has_figures=True)


def test_missing_rows_are_seen() -> None:
    assert not is_shown(TABLE, OTHER.rpartition("mnist")[0], has_figures=True)


PAGE = """\
# Title

```python
print(1)
```
That prints
```text
1
```
<!-- not run: it takes an hour -->
```console
$ sleep 3600
```

```console figures
$ one \\
    --two
3 ms
$ four
```
"""


def test_blocks_are_read_with_outputs_and_reasons() -> None:
    python, sleep, timed = code_blocks(PAGE)
    assert (python.language, python.line, python.text, python.output) == ("python", 4, "print(1)\n", "1\n")
    assert python.is_run
    assert sleep.not_run == "it takes an hour"
    assert not sleep.is_run
    assert timed.has_figures
    assert commands(timed) == [Command("one \\\n    --two", "3 ms\n"), Command("four", "")]
