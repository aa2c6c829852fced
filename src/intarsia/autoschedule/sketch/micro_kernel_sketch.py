"""Native's schedule family of a DAG as a sketch: the knobs of the family are open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.families import schedule_family
from intarsia.native.schedule.schedule_family import Choice, ScheduleFamily

_DRAWS: Final = 64
"""Number of draws that nearly always include a choice that fits the registers."""
_NEAR_SHARE: Final = 0.5
"""Share of draws that change a few knobs of the default choice; the others draw all knobs."""
_MOST_CHANGES: Final = 3
"""Maximum number of knobs that a draw near the default choice changes."""
_STEP_SHARE: Final = 0.5
"""Share of moves to the next value of a knob; the others draw any value."""


@dataclass(frozen=True)
class MicroKernelSketch:
    """The schedule family of a DAG: micro-kernels on packed operands, with the loops around them.

    Ansor's sketches have open lengths only; here register tiles, cache blocks, the order of
    loops, packing and padding are open together, and drawn tiles fit the registers of the machine.
    The choice is recovered from a state, so that it need not be stored beside it.

    Attributes:
        family: Schedule family; the default schedule is one of its members.
    """

    family: ScheduleFamily

    @classmethod
    def of_task(cls, task: SearchTask, isa: Isa) -> MicroKernelSketch | None:
        """Return the sketch of a task; None if its DAG has no schedule family.

        Args:
            task: Search task.
            isa: Instruction set, for the registers and caches of the machine.
        """
        family = schedule_family(task.dag, isa, task.hardware.num_cores)
        return None if family is None else cls(family)

    @property
    def default(self) -> LoopState | None:
        """Default schedule, with the ranges of all loops."""
        return self.family.state_of(self.family.default)

    def draw(self, rng: Random) -> LoopState | None:
        """Draw a random schedule, with the ranges of all loops; None if no draw fits."""
        family = self.family
        for _ in range(_DRAWS):
            values = [rng.choice(knob.values) for knob in family.knobs]
            if rng.random() < _NEAR_SHARE:
                changed = rng.sample(range(len(values)), rng.randint(1, min(_MOST_CHANGES, len(values))))
                pairs = enumerate(zip(values, family.default, strict=True))
                values = [value if index in changed else default for index, (value, default) in pairs]
            choice = family.canonical(tuple(values))
            if family.fits(choice):
                return family.state_of(choice)
        return None

    def draw_neighbour(self, state: LoopState, rng: Random) -> LoopState | None:
        """Draw a schedule that differs in one knob; None if no draw fits or it is of another family."""
        choice = self.family.choice_of(state)
        if choice is None:
            return None
        for _ in range(_DRAWS):
            knob_id = rng.randrange(len(choice))
            values = self.family.knobs[knob_id].values
            if rng.random() < _STEP_SHARE:
                values = _next_values(values, choice[knob_id])
            others = [value for value in values if value != choice[knob_id]]
            other = self._change(state, choice, knob_id, rng.choice(others)) if others else None
            if other is not None:
                return other
        return None

    def neighbours(self, state: LoopState) -> Iterator[LoopState]:
        """Yield the schedules with the next values of each knob; none if the state is not of the family."""
        choice = self.family.choice_of(state)
        for knob_id, knob in enumerate(self.family.knobs if choice is not None else ()):
            assert choice is not None, "else there are no knobs"
            for value in _next_values(knob.values, choice[knob_id]):
                other = self._change(state, choice, knob_id, value)
                if other is not None:
                    yield other

    def _change(self, state: LoopState, choice: Choice, knob_id: int, value: int) -> LoopState | None:
        """Return a state with another value of one knob, and of a second one if only that fits."""
        other = self._fit((*choice[:knob_id], value, *choice[knob_id + 1 :]), knob_id)
        changed = None if other is None else self.family.state_of(other)
        return None if changed is None or changed.text == state.text else changed

    def _fit(self, choice: Choice, kept: int) -> Choice | None:
        """Return the choice, or one with the nearest fitting value of one other knob.

        A tile that fills the registers can grow in one dimension only where it shrinks in another.
        """
        family = self.family
        if family.fits(family.canonical(choice)):
            return family.canonical(choice)
        for knob_id, knob in enumerate(family.knobs):
            nearest = sorted((abs(value - choice[knob_id]), value) for value in knob.values)
            for _, value in nearest if knob_id != kept else ():
                other = family.canonical((*choice[:knob_id], value, *choice[knob_id + 1 :]))
                if family.fits(other):
                    return other
        return None


def _next_values(values: tuple[int, ...], value: int) -> tuple[int, ...]:
    """Return the next smaller and the next larger value; `value` itself may be between two."""
    smaller = [other for other in values if other < value]
    larger = [other for other in values if other > value]
    return (*smaller[-1:], *larger[:1])
