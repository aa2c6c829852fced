"""Native's rule for a DAG as a sketch: what the rule decides is open."""

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
"""So many draws find nearly always a choice that fits."""
_NEAR_SHARE: Final = 0.5
"""The share of draws that begin with what the rule decides; the others decide all anew."""
_MOST_CHANGES: Final = 3
_STEP_SHARE: Final = 0.5
"""The share of moves that go to the next value of a knob; the others go anywhere."""


@dataclass(frozen=True)
class MicroKernelSketch:
    """The schedules that the rule for a DAG can make: micro-kernels on packed operands, and what is around.

    A sketch of the field has open lengths only; here tiles of registers, blocks for caches, the order of
    loops, copies and padding are open together, and what is drawn stays in the registers of the machine.
    States tell their choice themselves, so that nothing needs to be kept beside them.

    Attributes:
        family: The schedules; the default schedule is one of them.
    """

    family: ScheduleFamily

    @classmethod
    def of_task(cls, task: SearchTask, isa: Isa) -> MicroKernelSketch | None:
        """The sketch of a task; None if the rule for its DAG leaves nothing open.

        Args:
            task: What is searched.
            isa: The registers and caches of the machine; how many threads there are says the task.
        """
        family = schedule_family(task.dag, isa, task.hardware.num_cores)
        return None if family is None else cls(family)

    @property
    def default(self) -> LoopState | None:
        """The default schedule, with the ranges of all loops."""
        return self.family.state_of(self.family.default)

    def drawn(self, rng: Random) -> LoopState | None:
        """A random one of the schedules, with the ranges of all loops; None if what was drawn is none."""
        family = self.family
        for _ in range(_DRAWS):
            values = [rng.choice(knob.values) for knob in family.knobs]
            if rng.random() < _NEAR_SHARE:
                changed = rng.sample(range(len(values)), rng.randint(1, min(_MOST_CHANGES, len(values))))
                pairs = enumerate(zip(values, family.default, strict=True))
                values = [value if place in changed else default for place, (value, default) in pairs]
            choice = family.settled(tuple(values))
            if family.fits(choice):
                return family.state_of(choice)
        return None

    def moved(self, state: LoopState, rng: Random) -> LoopState | None:
        """A schedule of another choice in one knob; None if the state is of no choice, or all draws fail."""
        choice = self.family.choice_of(state)
        if choice is None:
            return None
        for _ in range(_DRAWS):
            place = rng.randrange(len(choice))
            values = self.family.knobs[place].values
            if rng.random() < _STEP_SHARE:
                values = _next_values(values, choice[place])
            others = [value for value in values if value != choice[place]]
            other = self._changed(state, choice, place, rng.choice(others)) if others else None
            if other is not None:
                return other
        return None

    def neighbours(self, state: LoopState) -> Iterator[LoopState]:
        """The schedules of the next values of each knob; none if the state is of no choice."""
        choice = self.family.choice_of(state)
        for place, knob in enumerate(self.family.knobs if choice is not None else ()):
            assert choice is not None, "else there are no knobs"
            for value in _next_values(knob.values, choice[place]):
                other = self._changed(state, choice, place, value)
                if other is not None:
                    yield other

    def _changed(self, state: LoopState, choice: Choice, place: int, value: int) -> LoopState | None:
        """With another value for one knob of a state's choice, and for a second one if only that fits."""
        other = self._fitted((*choice[:place], value, *choice[place + 1 :]), place)
        made = None if other is None else self.family.state_of(other)
        return None if made is None or made.text == state.text else made

    def _fitted(self, choice: Choice, kept: int) -> Choice | None:
        """The choice, or one with the nearest value that fits for one other knob.

        A tile that fills the registers grows in one way only where it shrinks in another one.
        """
        family = self.family
        if family.fits(family.settled(choice)):
            return family.settled(choice)
        for place, knob in enumerate(family.knobs):
            nearest = sorted((abs(value - choice[place]), value) for value in knob.values)
            for _, value in nearest if place != kept else ():
                other = family.settled((*choice[:place], value, *choice[place + 1 :]))
                if family.fits(other):
                    return other
        return None


def _next_values(values: tuple[int, ...], value: int) -> tuple[int, ...]:
    """The values before and behind one, which itself may be between two."""
    smaller = [each for each in values if each < value]
    larger = [each for each in values if each > value]
    return (*smaller[-1:], *larger[:1])
