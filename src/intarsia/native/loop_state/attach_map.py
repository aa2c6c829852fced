"""The attach map: stages that are computed inside loops of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

LoopPosition: TypeAlias = tuple[int, int]
"""Numbers of a stage and of one of its loops."""


@dataclass(frozen=True, slots=True)
class AttachMap:
    """Stages that are computed inside loops of others; immutable.

    Attributes:
        positions: Loop that each attached stage is computed in, by stage number.
        attached: Stages in each loop, in the order of stages, which is the order of computation (in TVM's
            first implementation it is the order of attaching).
    """

    positions: Mapping[int, LoopPosition] = field(default_factory=dict)
    attached: Mapping[LoopPosition, tuple[int, ...]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Invert the positions."""
        attached: dict[LoopPosition, list[int]] = {}
        for stage in sorted(self.positions):
            attached.setdefault(self.positions[stage], []).append(stage)
        view = {place: tuple(stages) for place, stages in attached.items()}
        object.__setattr__(self, "attached", MappingProxyType(view))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the positions only."""
        return AttachMap, (dict(self.positions),)

    def attach(self, stage: int, target: int, loop: int) -> AttachMap:
        """Return the map with a stage inside a loop, attached before or not."""
        return AttachMap(MappingProxyType({**self.positions, stage: (target, loop)}))

    def detach(self, stage: int) -> AttachMap:
        """Return the map without a stage; the same map if it is not attached."""
        if stage not in self.positions:
            return self
        return AttachMap(
            MappingProxyType({s: position for s, position in self.positions.items() if s != stage})
        )

    def with_loops_moved(self, target: int, new_number: Callable[[int], int]) -> AttachMap:
        """Return the map after the loops of a stage were renumbered, all at once."""
        if not any(stage == target for stage, _ in self.positions.values()):
            return self
        positions = {
            stage: (owner, new_number(loop)) if owner == target else (owner, loop)
            for stage, (owner, loop) in self.positions.items()
        }
        return AttachMap(MappingProxyType(positions))

    def with_stages_shifted(self, start: int, count: int = 1) -> AttachMap:
        """Return the map after `count` stages were inserted at `start`."""

        def shifted(stage: int) -> int:
            return stage + count if stage >= start else stage

        positions = {
            shifted(stage): (shifted(owner), loop) for stage, (owner, loop) in self.positions.items()
        }
        return AttachMap(MappingProxyType(positions))
