"""Schedule families: the default decisions of a DAG's rule, and the alternatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, TypeAlias

from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import infer_bound
from intarsia.support.errors import UsageError

Choice: TypeAlias = tuple[int, ...]
"""One value for each knob; yes is 1, no is 0."""


class Knob(NamedTuple):
    """An open decision.

    Attributes:
        name: Name of the decision, after that of the operation if there are several: "C.rows".
        values: Possible values, ascending; the default is one of them.
    """

    name: str
    values: tuple[int, ...]

    @classmethod
    def of(cls, name: str, values: Iterable[int], default: int) -> Knob:
        """Return a knob for these values and the default."""
        return cls(name, tuple(sorted({*values, default})))


@dataclass(frozen=True)
class ScheduleFamily:
    """The schedules that one rule can build for a DAG.

    `default_state` is the state of the default; a search tries the others too.

    Attributes:
        knobs: Open decisions.
        default: Default choice, a value for each knob.
        make: Function that builds the state of a choice, or raises UsageError.
        fits: Predicate: whether a choice suits the machine, so that sums fit into registers and a tile has
            enough work.
        read: Function that reads the choice from the loops of a state, or returns None. The choice may be
            wrong for states of other rules: `choice_of` checks it.
        canonical: Function that returns the canonical one of all choices with the same loops.
    """

    knobs: tuple[Knob, ...]
    default: Choice
    make: Callable[[Choice], LoopState]
    fits: Callable[[Choice], bool]
    read: Callable[[LoopState], Choice | None]
    canonical: Callable[[Choice], Choice] = tuple

    @property
    def size(self) -> int:
        """Number of choices, including those that do not fit."""
        return prod(len(knob.values) for knob in self.knobs)

    def state_of(self, choice: Choice) -> LoopState | None:
        """Return the state of a choice, with the ranges of all loops; None if its steps are not possible."""
        try:
            state = self.make(choice)
            ranged = infer_bound(state.initial_dag, state)
        except UsageError:
            return None
        ranged.notes[self] = choice
        return ranged

    def choice_of(self, state: LoopState) -> Choice | None:
        """Return the choice that builds an equal state; None if there is none."""
        try:
            choice = self.read(state)
        except UsageError:
            return None
        if choice is None or choice == state.notes.get(
            self
        ):  # the note shows that this choice has built the state
            return choice
        rebuilt = self.state_of(choice)
        if rebuilt is None or rebuilt.text != state.text:
            return None
        state.notes[self] = choice
        return choice


def loop_extents(state: LoopState, stage: str | int) -> dict[str, int]:
    """Return the extents of a stage's loops by name, in their order."""
    return {loop.name: loop.extent or 1 for loop in state[stage].iters}


def stands_outside(loops: Iterable[str], first: str, second: str) -> bool:
    """Return whether both loops exist, and the first one is outside of the second one."""
    order = list(loops)
    return first in order and second in order and order.index(first) < order.index(second)


def sizes_of_pieces(extent: int, most_pieces: int) -> tuple[int, ...]:
    """Return the sizes of 1 to `most_pieces` pieces, as equal as possible, and the sizes 1 to 4."""
    small = range(1, min(4, extent) + 1)
    return tuple(sorted({-(-extent // count) for count in range(1, min(extent, most_pieces) + 1)} | {*small}))


def divisors_up_to(extent: int, most: int) -> tuple[int, ...]:
    """Return the divisors of an extent up to a number."""
    return tuple(divisor for divisor in range(1, min(extent, most) + 1) if extent % divisor == 0)
