"""What can be wrong with what a pass does to a program, and the check for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from intarsia.driver.reproducer.limited_call import call_limited
from intarsia.ir import Function, IRModule, TensorType, Var, post_order
from intarsia.ir.scope import is_atom
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import Gate
from intarsia.measure.pass_bisection import judge_program
from intarsia.support.errors import IntarsiaError, VerifyError
from intarsia.target import UNCONSTRAINED
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.transform import Pass, PassContext
from intarsia.transform.program_check import check_program

DEFAULT_SECONDS: Final = 60.0
"""CPU seconds of a pass and its check: passes on the models of the zoo take seconds."""


class FailureKind(StrEnum):
    """What is wrong."""

    RAISED = "raised"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    BROKEN = "broken program"
    DEVICES = "lost devices"
    WRONG = "wrong result"


@dataclass(frozen=True, slots=True)
class PassFailure:
    """A failure of a pass.

    Attributes:
        kind: Kind of the failure.
        pass_name: The pass.
        text: Details in one line, such as the exception or the largest error.
        type: Type of the exception of a pass that raised; else "".
    """

    kind: FailureKind
    pass_name: str
    text: str
    type: str = ""

    def is_like(self, other: PassFailure | None) -> bool:
        """Whether another failure is the same but for details."""
        return other is not None and (self.kind, self.type) == (other.kind, other.type)

    def __str__(self) -> str:
        """`DropRelu: wrong result: output "logits" ...`."""
        return f"{self.pass_name}: {self.kind}: {self.text}"


@dataclass(frozen=True, slots=True)
class CheckLimits:
    """Limits of a check.

    Attributes:
        seconds: CPU seconds that the pass and the runs of the program may take; None checks in this process.
        seed: Seed of random inputs.
        has_results: Whether results are compared.
    """

    seconds: float | None = DEFAULT_SECONDS
    seed: int = 0
    has_results: bool = True

    def for_failure(self, failure: PassFailure) -> CheckLimits:
        """Return the limits for finding the same failure again: results are compared only if they matter."""
        return replace(self, has_results=failure.kind is FailureKind.WRONG)


def check_pass(item: Pass, mod: IRModule, ctx: PassContext, limits: CheckLimits) -> PassFailure | None:
    """Run a pass on a program, and return what is wrong; None for nothing.

    It may raise, crash, not end, break the rules of the language and its operators, lose the devices of a
    planned program, or change the result that the reference toolchain computes for random inputs. Results of
    programs that take longer than the limit are not compared.
    """
    if limits.seconds is None:
        return _failure(item, mod, ctx, limits)
    failure = _limited_failure(item, mod, ctx, replace(limits, has_results=False), limits.seconds)
    if failure is not None or not limits.has_results:
        return failure
    failure = _limited_failure(item, mod, ctx, limits, limits.seconds)
    is_slow = failure is not None and failure.kind is FailureKind.TIMED_OUT
    return None if is_slow else failure  # the pass ended before, so it is the program that is slow


def _limited_failure(
    item: Pass, mod: IRModule, ctx: PassContext, limits: CheckLimits, seconds: float
) -> PassFailure | None:
    """Check a pass in a process of its own."""
    name = item.info.name
    result = call_limited(lambda: _failure(item, mod, ctx, limits), seconds)
    if result.is_timed_out:
        return PassFailure(FailureKind.TIMED_OUT, name, f"no end after {seconds:g} s")
    if result.exit_code:
        return PassFailure(FailureKind.CRASHED, name, f"the process ended with exit code {result.exit_code}")
    return result.value


def _failure(item: Pass, mod: IRModule, ctx: PassContext, limits: CheckLimits) -> PassFailure | None:
    name = item.info.name
    try:
        after = item(mod, ctx)
    except Exception as error:  # what a pass raises is a finding like any other
        text = error.problem if isinstance(error, IntarsiaError) else str(error)
        return PassFailure(FailureKind.RAISED, name, f"{type(error).__name__}: {text}", type(error).__name__)
    try:
        check_program(after)
    except VerifyError as error:
        return PassFailure(FailureKind.BROKEN, name, _complaint(error.problem))
    lost = _lost_device(mod, after)
    if lost:
        return PassFailure(FailureKind.DEVICES, name, lost)
    text = "" if after is mod or not limits.has_results else _wrong_result(mod, after, limits.seed)
    return PassFailure(FailureKind.WRONG, name, text) if text else None


def _complaint(problem: str) -> str:
    """Return the first complaint of an annotated program."""
    marked = (line.partition("// ^ ")[2] for line in problem.splitlines())
    return next((text for text in marked if text), problem.splitlines()[0])


def _lost_device(before: IRModule, after: IRModule) -> str:
    """Return the first value without a device of a program that was planned before; "" for none."""
    if "main" not in before or _unplaced(before["main"]) or "main" not in after:
        return ""
    return next(iter(_unplaced(after["main"])), "")


def _unplaced(function: Function) -> list[str]:
    values = [expr for expr in post_order(function) if isinstance(expr, Var) or not is_atom(expr)]
    return [
        f"{type(expr).__name__} of type {expr.checked_type} has no device"
        for expr in values
        if expr.virtual_device == UNCONSTRAINED
    ]


def _wrong_result(before: IRModule, after: IRModule, seed: int) -> str:
    """Return why the result of a program is another one than before.

    It is "" for the same result, and for a program that the reference toolchain cannot run.
    """
    main = before["main"]
    types = {param.name: param.checked_type for param in main.params}
    if not all(isinstance(own, TensorType) and own.is_static for own in types.values()):
        return ""
    try:
        inputs = random_inputs(main, seed, types)
        gate = Gate.stand_in(before, inputs)
    except IntarsiaError:
        return ""
    verdict = judge_program(after, inputs, REFERENCE_TARGET, gate)
    return "" if verdict.is_right else verdict.message
