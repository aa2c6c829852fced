"""Every planted bug is found in a sequence of right passes, and reduced."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.planted_bugs import PLANNED, PLANTED, long_program

from intarsia.driver.reproducer import pass_failure
from intarsia.driver.reproducer.find_failure import find_failure
from intarsia.driver.reproducer.folder import Reproducer
from intarsia.driver.reproducer.pass_failure import CheckLimits, FailureKind, check_pass
from intarsia.driver.reproducer.reduce import count_operators, reduce_program
from intarsia.passes import EliminateCommonSubexpr, FoldConstant, InferType
from intarsia.target import UNCONSTRAINED
from intarsia.transform import PassContext, Sequential, get_pass
from intarsia.transform.pass_registry import holding_pass

CTX = PassContext(opt_level=3)


SLOW = (FailureKind.WRONG, FailureKind.TIMED_OUT)
"""Kinds for which the program runs, or the limit is waited for, dozens of times."""


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, marks=[pytest.mark.slow] if kind in SLOW else [])
        for bug, (kind, _) in PLANTED.items()
    ],
)
def test_a_bug_is_found_and_reduced(bug: str, tmp_path: Path) -> None:
    kind, item = PLANTED[bug]
    limits = CheckLimits(seconds=2 if kind is FailureKind.TIMED_OUT else 60)
    mod = long_program(PLANNED if kind is FailureKind.DEVICES else UNCONSTRAINED)
    assert count_operators(mod) > 35
    sequence = Sequential([InferType(), FoldConstant(), item, EliminateCommonSubexpr()])
    failing = find_failure(sequence, mod, CTX, limits)
    assert failing is not None
    assert (failing.failure.kind, failing.failure.pass_name) == (kind, item.info.name)

    Reproducer.of(failing, CTX, 0).write(tmp_path)
    with holding_pass(item.info.name, item):
        replayed = Reproducer.read(tmp_path)
        again = get_pass(replayed.pipeline)
        ctx = replayed.settings.context()
        reduction = reduce_program(again, replayed.mod, replayed.failure, ctx, limits)
    assert reduction.operators < 10
    assert reduction.failure.is_like(failing.failure)
    failure = check_pass(item, reduction.mod, ctx, limits)
    assert failure is not None
    assert failure.kind is kind


def test_right_passes_have_no_failure() -> None:
    sequence = Sequential([InferType(), FoldConstant(), EliminateCommonSubexpr()])
    assert find_failure(sequence, long_program(), CTX, CheckLimits()) is None


def test_a_check_in_this_process() -> None:
    _, item = PLANTED["raising"]
    failure = check_pass(item, long_program(), CTX, CheckLimits(seconds=None))
    assert str(failure) == "Raise: raised: KeyError: 'axis'"


@pytest.mark.slow
def test_a_program_that_is_slow_is_no_failure_of_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def never_judged(*_: object) -> str:
        while True:
            pass

    monkeypatch.setattr(pass_failure, "_wrong_result", never_judged)
    _, item = PLANTED["dropped operator"]
    assert check_pass(item, long_program(), CTX, CheckLimits(seconds=1)) is None
