"""Which stages stand inside which loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

Place: TypeAlias = tuple[int, int]
"""A stage and one of its loops, by number."""


@dataclass(frozen=True, slots=True)
class AttachMap:
    """Stages inside loops of others, immutable.

    Attributes:
        places: The loop that each attached stage stands in.
        attached: The stages in each loop, in the order of stages, which is the order they are computed in
            (and not, as in the field's first implementation, the order of attaching).
    """

    places: Mapping[int, Place] = field(default_factory=dict)
    attached: Mapping[Place, tuple[int, ...]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Turn the places around."""
        attached: dict[Place, list[int]] = {}
        for stage in sorted(self.places):
            attached.setdefault(self.places[stage], []).append(stage)
        view = {place: tuple(stages) for place, stages in attached.items()}
        object.__setattr__(self, "attached", MappingProxyType(view))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the places only."""
        return AttachMap, (dict(self.places),)

    def attach(self, stage: int, target: int, loop: int) -> AttachMap:
        """With a stage inside a loop, wherever it stood before."""
        return AttachMap(MappingProxyType({**self.places, stage: (target, loop)}))

    def detach(self, stage: int) -> AttachMap:
        """Without a stage; the same if it is not attached."""
        if stage not in self.places:
            return self
        return AttachMap(MappingProxyType({s: place for s, place in self.places.items() if s != stage}))

    def with_loops_moved(self, target: int, moved: Callable[[int], int]) -> AttachMap:
        """After the loops of a stage got other numbers, all at once."""
        if not any(stage == target for stage, _ in self.places.values()):
            return self
        places = {
            stage: (at, moved(loop)) if at == target else (at, loop)
            for stage, (at, loop) in self.places.items()
        }
        return AttachMap(MappingProxyType(places))

    def with_stages_shifted(self, start: int, count: int = 1) -> AttachMap:
        """After `count` stages were put in: numbers from `start` on grow by that."""

        def moved(stage: int) -> int:
            return stage + count if stage >= start else stage

        places = {moved(stage): (moved(at), loop) for stage, (at, loop) in self.places.items()}
        return AttachMap(MappingProxyType(places))
