"""Related schedules of a DAG: what its rule decides, with the other ways in which it could be decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, TypeAlias

from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import infer_bound
from intarsia.support.errors import UsageError

Choice: TypeAlias = tuple[int, ...]
"""A decision for each knob; yes is 1, no is 0."""


class Knob(NamedTuple):
    """A decision that is open.

    Attributes:
        name: What is decided, and of which operation where there are several: "C.rows".
        values: What may be decided, ascending; the default is one of them.
    """

    name: str
    values: tuple[int, ...]

    @classmethod
    def of(cls, name: str, values: Iterable[int], default: int) -> Knob:
        """A knob for these values, and the default."""
        return cls(name, tuple(sorted({*values, default})))


@dataclass(frozen=True)
class ScheduleFamily:
    """The schedules that one rule can make of a DAG.

    `default_state` is the state of the default; a search tries the others too.

    Attributes:
        knobs: What is open.
        default: What the rule decides, a value for each knob.
        make: The state of a choice, which may be refused with a UsageError.
        fits: Whether a choice makes sense for the machine: sums stay in registers, and there is enough to do
            in a tile.
        read: What was decided, as far as the loops of a state tell, or None. It may read nonsense from the
            states of others: `choice_of` looks twice.
        settled: The choice that stands for all that make the same loops as one.
    """

    knobs: tuple[Knob, ...]
    default: Choice
    make: Callable[[Choice], LoopState]
    fits: Callable[[Choice], bool]
    read: Callable[[LoopState], Choice | None]
    settled: Callable[[Choice], Choice] = tuple

    @property
    def size(self) -> int:
        """How many choices there are, those that do not fit included."""
        return prod(len(knob.values) for knob in self.knobs)

    def state_of(self, choice: Choice) -> LoopState | None:
        """The state of a choice, with the ranges of all loops; None if its steps are not possible."""
        try:
            state = self.make(choice)
            made = infer_bound(state.initial_dag, state)
        except UsageError:
            return None
        made.notes[self] = choice
        return made

    def choice_of(self, state: LoopState) -> Choice | None:
        """The choice that makes a state, equal in all steps; None if there is none."""
        try:
            choice = self.read(state)
        except UsageError:
            return None
        if choice is None or choice == state.notes.get(self):  # then this choice has made it
            return choice
        made = self.state_of(choice)
        if made is None or made.text != state.text:
            return None
        state.notes[self] = choice
        return choice


def loop_extents(state: LoopState, stage: str | int) -> dict[str, int]:
    """The extents of a stage's loops by name, in their order."""
    return {loop.name: loop.extent or 1 for loop in state[stage].iters}


def stands_outside(loops: Iterable[str], first: str, second: str) -> bool:
    """Whether there are two loops, and the first one stands outside of the second one."""
    order = list(loops)
    return first in order and second in order and order.index(first) < order.index(second)


def sizes_of_pieces(extent: int, most_pieces: int) -> tuple[int, ...]:
    """The sizes of 1 to so many pieces that are as equal as they can be, and the smallest sizes."""
    small = range(1, min(4, extent) + 1)
    return tuple(sorted({-(-extent // count) for count in range(1, min(extent, most_pieces) + 1)} | {*small}))


def divisors_up_to(extent: int, most: int) -> tuple[int, ...]:
    """The divisors of an extent up to a number."""
    return tuple(each for each in range(1, min(extent, most) + 1) if extent % each == 0)
