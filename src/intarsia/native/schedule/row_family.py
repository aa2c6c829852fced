"""The schedules of stages by rows that a search tries."""

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
    """All schedules of `row_state`: how many vectors at once, and pieces of work, where these matter."""
    default = task.by_rows

    def make(choice: Choice) -> LoopState:
        return row_state(replace(task, by_rows=RowChoice(*choice)))

    steps = make(default).transform_steps

    def matters(place: int, value: int) -> bool:
        """Whether it changes anything, where the other decisions are those of the default."""
        choice = (*default[:place], value, *default[place + 1 :])
        return make(choice).transform_steps != steps

    knobs = tuple(
        Knob.of(name, [value for value in values if matters(place, value)], default[place])
        for place, (name, values) in enumerate(zip(RowChoice._fields, _values(task), strict=True))
    )
    known: dict[tuple[TransformStep, ...], Choice] = {steps: default}

    def read(state: LoopState) -> Choice | None:
        """Compares with all: they are few."""
        if len(known) == 1:
            for choice in product(*(knob.values for knob in knobs)):
                known.setdefault(make(choice).transform_steps, choice)
        return known.get(state.transform_steps)

    return ScheduleFamily(knobs, default, make, lambda _: True, read)


def _values(task: ScheduleTask) -> tuple[tuple[int, ...], ...]:
    return _VECTORS, _VECTORS, _CHUNKS if task.threads > 1 else ()
