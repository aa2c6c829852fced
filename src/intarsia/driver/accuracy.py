"""How exact results have to be: what a user allows beyond rounding, and what he forbids within it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from intarsia.ir import IRModule
from intarsia.measure.judge.accuracy import with_error_bound
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.transform import Pass
from intarsia.tune.passes import TuneConvolutions, TunePrecision, TuneWeights

_NATIVE: Final = "native"
_DIRECT: Final = "direct"
_LESS_ACCURATE: Final = "winograd_6"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What results may be.

    Attributes:
        exact: Whether sums are computed as engines do: no algorithm takes fewer operations by other sums,
            such as Winograd's.
        tolerance: The largest error of an output allowed, as a fraction of its largest value; with one that
            is larger than rounding, narrower types and less accurate algorithms take part. None: as exact as
            types allow, by rounding error analysis.

    Raises:
        UsageError: The tolerance is no positive number.
    """

    exact: bool = False
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            with_error_bound(IRModule({}), self.tolerance)

    def program(self, mod: IRModule) -> IRModule:
        """A program that carries the bound, by which everything made of it is judged."""
        return mod if self.tolerance is None else with_error_bound(mod, self.tolerance)

    def targets(self, targets: Sequence[Target]) -> tuple[Target, ...]:
        """Targets that compute as is allowed.

        Raises:
            UsageError: One asks for an algorithm that is forbidden.
        """
        return tuple(map(self._target, targets)) if self.exact else tuple(targets)

    def _target(self, target: Target) -> Target:
        if target.toolchain != _NATIVE:
            return target
        if target.option("convolutions", _DIRECT) not in ("auto", _DIRECT):
            raise UsageError(
                f"results are to be exact, and the target {str(target)!r} asks for another algorithm",
                help="leave out -convolutions, or --exact",
            )
        return target.with_options(convolutions=_DIRECT)

    def passes(self, passes: Sequence[Pass], *, are_given: bool) -> tuple[Pass, ...]:
        """The passes that decide on the program: without what is forbidden, with what is allowed.

        Args:
            passes: Those of the pipeline, or of the user.
            are_given: Whether they are the user's: then nothing is added.

        Raises:
            UsageError: The user's are forbidden.
        """
        if self.exact:
            kept = tuple(item for item in passes if not isinstance(item, TuneConvolutions))
            if are_given and len(kept) < len(passes):
                raise UsageError(
                    "results are to be exact, and TuneConvolutions chooses other algorithms",
                    help="leave out one of them",
                )
            return kept
        if self.tolerance is None or are_given:
            return tuple(passes)
        narrower = TuneWeights(tolerance=self.tolerance), TunePrecision(tolerance=self.tolerance)
        return (*map(_with_less_accurate, passes), *narrower)


def _with_less_accurate(item: Pass) -> Pass:
    if not isinstance(item, TuneConvolutions):
        return item
    return replace(item, algorithms=(*item.algorithms, _LESS_ACCURATE))
