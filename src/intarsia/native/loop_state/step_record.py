"""A step of a history as data, and its JSON form in TVM's v0.6 log."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar, TypeAlias

StepJson: TypeAlias = list[Any]
"""A list of a code, then numbers, texts, and lists of numbers."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step as the history of a state records it.

    A `TransformStep` is a record that can also be applied. Fields have the order of the JSON form, `[code,
    stage_id, ...]`. Numbers of stages and loops are those at the time when the step is applied.

    Attributes:
        stage_id: Number of the stage that is changed.
    """

    stage_id: int
    code: ClassVar[str]
    adds_stage: ClassVar[bool] = False


def step_to_json(step: StepRecord) -> StepJson:
    """Return a step as a list; an unknown extent is 0, and a length that is not chosen is null."""
    values = (getattr(step, field.name) for field in fields(step))
    return [step.code, *(0 if value is None else _plain(value) for value in values)]


def _plain(value: object) -> object:
    match value:
        case bool() | IntEnum():
            return int(value)
        case tuple():
            return list(value)
        case _:
            return value
