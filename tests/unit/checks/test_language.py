"""The vocabulary check finds each kind of breach, and leaves plain sentences alone."""

from __future__ import annotations

import ast

import pytest
from checks.language import (
    Violation,
    argument_fragments,
    is_forbidden,
    messages,
    persons_and_dialect,
    vague_names,
)

LONG_LIVED = """
def f(found):
    a = 1
    b = 2
    return found
"""
SHORT_LIVED = """
def f(found):
    return found
"""
FIELD = """
class C:
    _known: dict[str, int]
"""
DOCSTRING = """Tune it.

Args:
    {line}

Returns:
    Of no concern here.
"""


@pytest.mark.parametrize(
    ("source", "names"), [(LONG_LIVED, ["found"]), (SHORT_LIVED, []), (FIELD, ["_known"])]
)
def test_names(source: str, names: list[str]) -> None:
    assert [violation.text for violation in vague_names(ast.parse(source), "f.py")] == names


@pytest.mark.parametrize("line", ["rows: Of a tile.", "buffers: Them, in order.", "on_wait: Told why."])
def test_fragments(line: str) -> None:
    (violation,) = argument_fragments(10, DOCSTRING.format(line=line), "f.py")
    assert (violation.line, violation.text) == (13, line)


@pytest.mark.parametrize("line", ["rows: Number of rows of the tile.", "**kwargs: Options of the target."])
def test_phrases(line: str) -> None:
    assert not list(argument_fragments(1, DOCSTRING.format(line=line), "f.py"))


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("A pass that knows nothing", ["person"]),
        ("who runs what", ["person"]),
        ("timed in turns", ["dialect"]),
        ("Return the register tile for an MR x NR micro-kernel.", []),
        ("the whole program, known types", []),
    ],
)
def test_prose(text: str, rules: list[str]) -> None:
    assert [violation.rule for violation in persons_and_dialect(1, text, "f.py")] == rules


def test_messages_are_read_within_their_calls() -> None:
    tree = ast.parse('raise UsageError(f"the model {name} is told", help="ask again", key="word")')
    assert [text for _, text in messages(tree)] == ["the model ", " is told", "ask again"]


@pytest.mark.parametrize(
    ("rule", "is_reported"), [("args", True), ("dialect", True), ("name", False), ("person", False)]
)
def test_names_and_persons_are_left_to_the_reviewer_in_tests(rule: str, is_reported: bool) -> None:
    assert is_forbidden(Violation("tests/unit/test_f.py", 1, rule, "text")) is is_reported
    assert is_forbidden(Violation("src/intarsia/f.py", 1, rule, "text"))
