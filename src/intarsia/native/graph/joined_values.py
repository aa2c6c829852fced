"""Concat without a kernel: what is put together is written where it belongs from the start."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from intarsia.native.graph.straight_line import Step, StraightLine


@dataclass(frozen=True, slots=True)
class JoinedValues:
    """Which values lie inside others.

    Attributes:
        places: For a part, the number of the whole and where in it the part begins, in bytes. A whole may be
            a part of another one.
        steps: Places in the region of the steps that need no kernel.
    """

    places: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    steps: frozenset[int] = frozenset()

    def within(self, value: int) -> tuple[int, int]:
        """The outermost whole that a value is in, itself if none, and where in it, in bytes."""
        offset = 0
        while value in self.places:
            value, begin = self.places[value]
            offset += begin
        return value, offset

    def only(self, wholes: Container[int]) -> JoinedValues:
        """The places in some wholes."""
        places = {part: place for part, place in self.places.items() if place[0] in wholes}
        return JoinedValues(places, self.steps)

    @classmethod
    def of(cls, line: StraightLine, alignment: int) -> JoinedValues:
        """Every Concat whose arguments lie one after the other in the result, and may be written there.

        An argument must be what a kernel writes, no result of the region, and part of no other Concat; where
        it begins is a multiple of the alignment. Linear in the region.
        """
        made = {number for step in line.steps for number in step.outputs}
        free = made - {line.values[number].same_as for number in line.results}
        places: dict[int, tuple[int, int]] = {}
        steps = set()
        for place, step in enumerate(line.steps):
            parts = _parts(step, line, alignment)
            roots = {root for root, _ in parts}
            is_free = all(number in free and number not in places for number in (*roots, *step.outputs))
            if parts and is_free and len(roots) == len(step.args):
                steps.add(place)
                places |= {root: (step.outputs[0], begin) for root, begin in parts}
        return cls(places, frozenset(steps))


def _parts(step: Step, line: StraightLine, alignment: int) -> tuple[tuple[int, int], ...]:
    """The roots of a Concat's arguments and where they begin; () if they do not lie one after the other."""
    if str(step.op) != "Concat":
        return ()
    shape = line.values[step.outputs[0]].type.static_shape
    axis = step.call.attrs["axis"]
    assert isinstance(axis, int)
    if any(extent != 1 for extent in shape[: axis % len(shape)]):
        return ()
    begin, found = 0, []
    for arg in step.args:
        if arg is None or begin % alignment:
            return ()
        found.append((line.values[arg].same_as, begin))
        begin += line.values[arg].size_bytes
    return tuple(found)
