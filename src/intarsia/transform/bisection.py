"""Finding the first pass after which a program computes something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from intarsia.ir import IRModule
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.instrument.change_tracking import ChangeTracking, PassChange
from intarsia.transform.pass_context import PassContext
from intarsia.transform.pass_owner import PassOwner, pass_owner


@dataclass(frozen=True, slots=True)
class BisectedPass:
    """One pass of the sequence that was searched.

    Attributes:
        name: The pass.
        change: Program before and after the pass.
        is_right: Whether the program was right after it; None if this was not needed to know.
    """

    name: str
    change: PassChange
    is_right: bool | None = None


@dataclass(frozen=True, slots=True)
class RaisedPass:
    """A pass that has ended the sequence with an exception.

    Attributes:
        name: The innermost pass that raised.
        error: The exception.
        owner: Module and package of the pass; None if it is unknown.
        before: Program that the pass was given.
    """

    name: str
    error: Exception
    owner: PassOwner | None
    before: IRModule

    def __str__(self) -> str:
        """`Fails raised ValueError: no good (module wrong_passes of wrong-passes 1.0)`."""
        owner = "" if self.owner is None else f" ({self.owner})"
        problem = getattr(self.error, "problem", str(self.error))
        text = f": {problem}" if problem else ""
        return f"{self.name} raised {type(self.error).__name__}{text}{owner}"


@dataclass(frozen=True, slots=True)
class Bisection:
    """What a search has found.

    Attributes:
        passes: The passes that ran, in order, required ones included.
        guilty: The first pass after which the program is wrong, or None.
        error: Error that ended the sequence, or None.
        raised: The pass that raised the error; None without an error, and where no pass had begun.
        evaluations: Number of programs that were judged.
    """

    passes: tuple[BisectedPass, ...]
    guilty: BisectedPass | None
    error: Exception | None
    evaluations: int
    raised: RaisedPass | None = None


def bisect_passes(
    sequence: Pass,
    mod: IRModule,
    is_right: Callable[[IRModule], bool],
    *,
    exhaustive: bool = False,
    ctx: PassContext | None = None,
) -> Bisection:
    """Run a sequence once, then judge as few of the programs between its passes as possible.

    A binary search: if the program stays wrong once it is, the pass is found with about log2 of as many
    judgements as passes changed the program. Where a later pass may make up for an earlier one, `exhaustive`
    judges every program.

    Args:
        sequence: The passes.
        mod: The program; it counts as right.
        is_right: Judges a program.
        exhaustive: Whether to judge the program after every pass that changed it, in order.
        ctx: Level and names to run under; default: the current context. Its own instruments are not called.
    """
    tracking = ChangeTracking()
    error = _run(sequence, mod, PassContext.current() if ctx is None else ctx, tracking)
    bisected = [BisectedPass(item.name, item) for item in tracking.changes if item.is_innermost]
    steps = [index for index, item in enumerate(bisected) if item.change.is_changed]
    judged = _Judge(bisected, is_right)
    guilty = _first_wrong(steps, judged) if exhaustive else _search(steps, judged)
    culprit = None if guilty is None else bisected[guilty]
    return Bisection(tuple(bisected), culprit, error, judged.count, raised_pass(sequence, tracking, error))


class _Judge:
    """Judges the program after a pass, and notes it."""

    def __init__(self, passes: list[BisectedPass], is_right: Callable[[IRModule], bool]) -> None:
        self._passes = passes
        self._is_right = is_right
        self.count = 0

    def __call__(self, index: int) -> bool:
        verdict = self._is_right(self._passes[index].change.after)
        self._passes[index] = replace(self._passes[index], is_right=verdict)
        self.count += 1
        return verdict


def _first_wrong(steps: list[int], is_right: Callable[[int], bool]) -> int | None:
    wrong = [index for index in steps if not is_right(index)]
    return wrong[0] if wrong else None


def _search(steps: list[int], is_right: Callable[[int], bool]) -> int | None:
    if not steps or is_right(steps[-1]):
        return None
    low, high = 0, len(steps) - 1  # the program after steps[high] is wrong, that before steps[low] right
    while low < high:
        middle = (low + high) // 2
        if is_right(steps[middle]):
            low = middle + 1
        else:
            high = middle
    return steps[high]


def _run(sequence: Pass, mod: IRModule, ctx: PassContext, tracking: ChangeTracking) -> Exception | None:
    """Run a sequence under an instrument, and return what ended the run early."""
    settings = PassContext(ctx.opt_level, ctx.required_pass, ctx.disabled_pass, ctx.config, [tracking])
    try:
        with settings:
            sequence(mod, settings)
    except Exception as error:  # what a pass raises is a finding like any other
        return error
    return None


def raised_pass(sequence: Pass, tracking: ChangeTracking, error: Exception | None) -> RaisedPass | None:
    """Return the innermost pass that an error has left.

    Args:
        sequence: The passes that ran.
        tracking: Instrument that watched them, after its context.
        error: The error that ended them, or None.
    """
    if error is None or not tracking.raised:
        return None
    name, before = tracking.raised[0]
    return RaisedPass(name, error, pass_owner(name, sequence), before)
