"""Steps read from the JSON of the v0.6 log, `["SP", 2, 0, 512, [16], 1]`; `step_to_json` writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final

from intarsia.native.loop_state.iterator import IteratorAnnotation
from intarsia.native.loop_state.steps import STEPS, TransformStep
from intarsia.support.errors import UsageError


def step_from_json(data: object) -> TransformStep:
    """Parse the JSON list of a step.

    Raises:
        UsageError: The code is unknown, or the other items do not fit it.
    """
    if not (isinstance(data, list) and data and isinstance(data[0], str)):
        raise UsageError(f"{data!r:.80} is no step; expected a list that begins with a code")
    kind = STEPS.get(data[0])
    if kind is None:
        raise UsageError(f"step code {data[0]!r} is unknown; there are {', '.join(sorted(STEPS))}")
    kind_fields = fields(kind)
    if len(data) != len(kind_fields) + 1:
        text = f"step {data!r:.80} has {len(data) - 1} fields; expected {len(kind_fields)}"
        raise UsageError(f"{text}: {', '.join(field.name for field in kind_fields)}")
    values = []
    for field, value in zip(kind_fields, data[1:], strict=True):
        reader = _READERS[str(field.type)]
        if not reader.accepts(value):
            raise UsageError(f"step {data!r:.80}: {field.name} is {value!r:.40}; expected {reader.expected}")
        values.append(reader.read(value))
    return kind(*values)


@dataclass(frozen=True, slots=True)
class _Reader:
    expected: str
    accepts: Callable[[Any], bool]
    read: Callable[[Any], Any] = lambda value: value


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_READERS: Final = {
    "int": _Reader("a number", _is_number),
    "int | None": _Reader("a number", _is_number, lambda value: value or None),
    "str": _Reader("a text", lambda value: isinstance(value, str)),
    "bool": _Reader("0 or 1", lambda value: value in (0, 1), bool),
    "IteratorAnnotation": _Reader("0 to 11", lambda value: value in range(12), IteratorAnnotation),
    "tuple[int, ...]": _Reader(
        "a list of numbers", lambda value: isinstance(value, list) and all(map(_is_number, value)), tuple
    ),
    "tuple[int | None, ...]": _Reader(
        "a list of numbers or null",
        lambda value: isinstance(value, list) and all(each is None or _is_number(each) for each in value),
        tuple,
    ),
}
"""Readers of fields, by the text of the type."""
