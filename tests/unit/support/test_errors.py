"""Errors: one message, the right exit code, and they survive a process border."""

from __future__ import annotations

import pickle

import pytest

from intarsia.support import errors
from intarsia.support.errors import IntarsiaError, InvalidModelError, causes


def all_errors() -> list[type[IntarsiaError]]:
    return [
        item for item in vars(errors).values() if isinstance(item, type) and issubclass(item, IntarsiaError)
    ]


def test_a_message_is_problem_notes_and_help() -> None:
    error = InvalidModelError("the graph has a cycle", help="use Loop")
    error.add_note("at node 'a'")
    assert str(error) == "the graph has a cycle\n  at node 'a'\nhelp: use Loop"


@pytest.mark.parametrize("kind", all_errors())
def test_every_error_crosses_a_process_border(kind: type[IntarsiaError]) -> None:
    error = kind("a problem", help="a help")
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert again.exit_code == error.exit_code


def test_the_tree_in_the_module_names_every_error_with_its_exit_code() -> None:
    tree = errors.__doc__ or ""
    for kind in all_errors():
        assert f" {kind.__name__} " in tree, kind
    codes = {kind.__name__: kind.exit_code for kind in all_errors()}
    assert codes["UsageError"] == codes["InputError"] == codes["OutputError"] == 2
    assert codes["ModelError"] == codes["CompileError"] == codes["ArtifactError"] == 3
    assert codes["VerificationError"] == 4
    assert codes["TooSlowError"] == 5
    assert codes["DatabaseError"] == 6
    assert codes["ExecutionError"] == 1


def test_causes_are_yielded_once_each_although_an_error_is_its_own_cause() -> None:
    first, second, third = ValueError("first"), KeyError("second"), OSError("third")
    first.__cause__, second.__context__ = second, third
    assert list(causes(first)) == [first, second]
    assert list(causes(first, with_contexts=True)) == [first, second, third]
    third.__cause__ = first
    assert list(causes(first, with_contexts=True)) == [first, second, third]
    alone = ValueError("alone")
    alone.__cause__ = alone
    assert list(causes(alone)) == [alone]
