"""What it costs to cross from one toolchain to another, besides what each costs by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from intarsia.collage.search import Transition


@dataclass(frozen=True, slots=True)
class Crossing:
    """Seconds for a value that one kernel writes and the next one reads: fixed, and for each byte."""

    fixed: float = 0.0
    per_byte: float = 0.0


FREE = Crossing()


class DeferredCrossings(Mapping[tuple[str, str], Crossing]):
    """Crossings that are measured on the first look: a search that needs none measures none.

    Args:
        measure: Function that measures them.
    """

    def __init__(self, measure: Callable[[], Mapping[tuple[str, str], Crossing]]) -> None:
        self._measure = measure
        self._measured: Mapping[tuple[str, str], Crossing] | None = None

    @property
    def known(self) -> Mapping[tuple[str, str], Crossing]:
        """The crossings that were measured; none before the first look."""
        return {} if self._measured is None else self._measured

    def __getitem__(self, pair: tuple[str, str]) -> Crossing:
        return self._all()[pair]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> Mapping[tuple[str, str], Crossing]:
        if self._measured is None:
            self._measured = self._measure()
        return self._measured


@dataclass(frozen=True, slots=True)
class BoundaryCosts:
    """The border costs of a host.

    Attributes:
        crossings: Cost by writing and reading toolchain; pairs that are missing are free. So are
            the host (tuples, projections) and the outside: kernels measured by themselves read and write
            plain arrays already.
        calls: Seconds that a call of a partition costs beyond what it was measured with, by toolchain.
        run_seconds: Time of every run besides its kernels: the executable's call.
    """

    crossings: Mapping[tuple[str, str], Crossing] = field(default_factory=lambda: MappingProxyType({}))
    calls: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    run_seconds: float = 0.0

    def without_deferred(self) -> BoundaryCosts:
        """Return the costs with the crossings that are measured; deferred ones stay unmeasured, and free."""
        crossings = self.crossings
        return replace(self, crossings=crossings.known) if isinstance(crossings, DeferredCrossings) else self

    def dispatch(self, spec: str) -> float:
        """Seconds that one partition of a spec costs beyond its inside."""
        return self.calls.get(spec, 0.0)

    def transition(self, specs: Sequence[str]) -> Transition:
        """The matrices of the search, for specs in this order; the last row and column are the outside."""
        rows = [*specs, ""]
        transitions = [[self.crossings.get((one, other), FREE) for other in rows] for one in rows]
        return Transition.of(
            [[transition.fixed for transition in row] for row in transitions],
            [[transition.per_byte for transition in row] for row in transitions],
        )

    def to_json(self) -> dict[str, Any]:
        """As plain data, in seconds and seconds for each byte."""
        return {
            "run_seconds": self.run_seconds,
            "crossings": [
                {"from": one, "to": other, "fixed": each.fixed, "per_byte": each.per_byte}
                for (one, other), each in sorted(self.crossings.items())
            ],
        }


NO_BOUNDARIES = BoundaryCosts()
"""All borders are free."""
