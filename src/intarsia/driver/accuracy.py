"""Accuracy requirements: errors allowed beyond rounding, and algorithms forbidden within it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from intarsia.ir import IRModule
from intarsia.measure.judge.accuracy import with_error_bound
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.transform import Pass
from intarsia.tune.passes import TuneConvolutions, TuneKernelsJointly, TunePrecision, TuneWeights

_NATIVE: Final = "native"
_DIRECT: Final = "direct"
_LESS_ACCURATE: Final = "winograd_6"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Accuracy requirements of a user.

    Attributes:
        exact: Whether sums must be computed directly, without algorithms that save operations,
            such as Winograd's.
        tolerance: Largest allowed error of an output, as a fraction of its largest value; with one that
            is larger than rounding, narrower types and less accurate algorithms take part. None for the bound
            of rounding error analysis.

    Raises:
        UsageError: The tolerance is not a positive number.
    """

    exact: bool = False
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            with_error_bound(IRModule({}), self.tolerance)

    def program(self, mod: IRModule) -> IRModule:
        """Return the program with the error bound that all its candidates are checked against."""
        return mod if self.tolerance is None else with_error_bound(mod, self.tolerance)

    def targets(self, targets: Sequence[Target]) -> tuple[Target, ...]:
        """Return the targets with forbidden algorithms switched off.

        Raises:
            UsageError: A target requests a forbidden algorithm.
        """
        return tuple(map(self._target, targets)) if self.exact else tuple(targets)

    def _target(self, target: Target) -> Target:
        if target.toolchain != _NATIVE:
            return target
        if target.option("convolutions", _DIRECT) not in ("auto", _DIRECT):
            raise UsageError(
                f"exact results are required, but the target {str(target)!r} requests another algorithm",
                help="remove -convolutions from the target, or drop --exact",
            )
        return target.with_options(convolutions=_DIRECT)

    def passes(self, passes: Sequence[Pass], *, are_given: bool) -> tuple[Pass, ...]:
        """Return the tuning passes without forbidden decisions, and with those that the tolerance allows.

        Args:
            passes: Passes of the pipeline, or of the user.
            are_given: Whether the user chose them: then none is added.

        Raises:
            UsageError: A pass of the user is forbidden.
        """
        if self.exact:
            if are_given and any(map(_chooses_algorithms, passes)):
                raise UsageError(
                    "exact results are required, but TuneConvolutions chooses other algorithms",
                    help="drop either --exact or the pass",
                )
            return tuple(_direct_only(passes))
        if self.tolerance is None or are_given:
            return tuple(passes)
        narrower = TuneWeights(tolerance=self.tolerance), TunePrecision(tolerance=self.tolerance)
        return (*map(_with_less_accurate, passes), *narrower)


def _chooses_algorithms(item: Pass) -> bool:
    inner = item.passes if isinstance(item, TuneKernelsJointly) else (item,)
    return any(isinstance(part, TuneConvolutions) for part in inner)


def _direct_only(passes: Iterable[Pass]) -> Iterator[Pass]:
    """Yield passes without those that choose algorithms of convolutions."""
    for item in passes:
        if not _chooses_algorithms(item):
            yield item
        elif isinstance(item, TuneKernelsJointly) and (kept := tuple(_direct_only(item.passes))):
            yield replace(item, passes=kept)


def _with_less_accurate(item: Pass) -> Pass:
    if isinstance(item, TuneKernelsJointly):
        return replace(item, passes=tuple(map(_with_less_accurate, item.passes)))
    if not isinstance(item, TuneConvolutions):
        return item
    return replace(item, algorithms=(*item.algorithms, _LESS_ACCURATE))
