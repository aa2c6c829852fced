import pytest

from intarsia.cli.arguments.bash_words import rejoined_words
from intarsia.cli.arguments.completion import AFTER_PREFIX, complete_model


@pytest.mark.parametrize(
    ("words", "position", "joined", "is_after"),
    [
        (["intarsia", "tune", "zoo", ":", "mn"], 4, ["intarsia", "tune", "mn"], True),
        (["intarsia", "tune", "zoo", ":"], 3, ["intarsia", "tune", ""], True),
        (["intarsia", "tune", "zoo", ":"], 4, ["intarsia", "tune", ""], True),
        (["intarsia", "bench", "zoo", ":", "a", "zoo", ":"], 6, ["intarsia", "bench", "zoo:a", ""], True),
        (["intarsia", "tune", "zoo", ":", "a", "--tar"], 5, ["intarsia", "tune", "zoo:a", "--tar"], False),
        (["intarsia", "tune", "zo"], 2, ["intarsia", "tune", "zo"], False),
        (["intarsia", "tune", "zoo:mn"], 2, ["intarsia", "tune", "zoo:mn"], False),
        (["intarsia"], 1, ["intarsia", ""], False),
    ],
)  # fmt: skip
def test_words_that_bash_broke_at_the_colon(
    words: list[str], position: int, joined: list[str], is_after: bool
) -> None:
    environ = {
        "_INTARSIA_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(position),
    }
    changes = rejoined_words(environ)
    assert (changes["COMP_WORDS"].split(" "), int(changes["COMP_CWORD"])) == (joined, len(joined) - 1)
    assert (AFTER_PREFIX in changes) == is_after


def test_nothing_changes_elsewhere() -> None:
    words = {"COMP_WORDS": "intarsia tune zoo : mn", "COMP_CWORD": "4"}
    assert rejoined_words(words) == {}
    assert rejoined_words({**words, "_INTARSIA_COMPLETE": "complete_zsh"}) == {}


def test_names_without_the_prefix_that_is_there_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(AFTER_PREFIX, "1")
    assert [name for name, _ in complete_model("mn")] == ["mnist"]
