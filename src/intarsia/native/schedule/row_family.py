"""Schedule family of stages by rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Final

from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.steps import TransformStep
from intarsia.native.schedule.row_schedule import row_state
from intarsia.native.schedule.schedule_family import Choice, Knob, ScheduleFamily
from intarsia.native.schedule.schedule_task import RowChoice, ScheduleTask

_VECTORS: Final = (1, 2, 4, 8)
_CHUNKS: Final = (1, 2, 4, 8, 16, 32)


def row_family(task: ScheduleTask) -> ScheduleFamily:
    """Return the family of `row_state`: numbers of vectors and of chunks, where they change the loops."""
    default = task.by_rows

    def make(choice: Choice) -> LoopState:
        return row_state(replace(task, by_rows=RowChoice(*choice)))

    steps = make(default).transform_steps

    def matters(position: int, value: int) -> bool:
        """Return whether a value changes the steps, with all other decisions at their defaults."""
        choice = (*default[:position], value, *default[position + 1 :])
        return make(choice).transform_steps != steps

    knobs = tuple(
        Knob.of(name, [value for value in values if matters(position, value)], default[position])
        for position, (name, values) in enumerate(zip(RowChoice._fields, _values(task), strict=True))
    )
    choices: dict[tuple[TransformStep, ...], Choice] = {steps: default}

    def read(state: LoopState) -> Choice | None:
        """Compare with the states of all choices, which are few."""
        if len(choices) == 1:
            for choice in product(*(knob.values for knob in knobs)):
                choices.setdefault(make(choice).transform_steps, choice)
        return choices.get(state.transform_steps)

    return ScheduleFamily(knobs, default, make, lambda _: True, read)


def _values(task: ScheduleTask) -> tuple[tuple[int, ...], ...]:
    return _VECTORS, _VECTORS, _CHUNKS if task.threads > 1 else ()
