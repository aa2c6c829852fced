"""Text of passes and their options: `TuneLayout{layouts=["NHWC"]}`; `pass_syntax` reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from math import inf, nan
from typing import Any, Final, TypeAlias

from intarsia.transform.option_type import changed_fields, is_option
from intarsia.transform.pass_store import PASSES

NAME: Final = re.compile(r"[^\W\d][\w.\-]*")
"""Names that need no quotation marks."""

WORDS: Final[Mapping[str, object]] = {
    "None": None,
    "True": True,
    "true": True,
    "False": False,
    "false": False,
    "inf": inf,
    "nan": nan,
}
"""Words that are values, and never names."""

SEQUENTIAL: Final = "Sequential"
"""Name that a sequence of passes has in text."""

LINE_WIDTH: Final = 100
"""Columns of the text of a sequence, which is broken into lines."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Items between brackets, which stand on one line or on a line each."""

    opening: str
    items: tuple[_Text, ...]
    closing: str


_Text: TypeAlias = str | _Group


def pass_text(item: Any, width: int | None = None) -> str:
    """Return the text of a pass or sequence, with the options that are not as by default.

    Text that holds a value between angle brackets cannot be read again: the value is no number, text, truth
    value, None, pass or `option_type`, and no list of such.

    Args:
        item: The pass.
        width: Columns after which the text is broken into lines; None for one line.
    """
    options = _sequence_options(item) if _is_sequence(item) else changed_options(item)
    name = SEQUENTIAL if _is_sequence(item) else item.info.name
    return _rendered(_construct(name, options), width)


def option_text(value: object) -> str:
    """Return the text of the value of an option, on one line."""
    return _rendered(_text(value), None)


def construct_text(name: str, options: Mapping[str, object]) -> str:
    """Return the text of something with options: `Beam{width=2}`; without options its name alone.

    Args:
        name: Name of a pass or of an option type.
        options: Values of its options.
    """
    return _rendered(_construct(name, options), None)


def changed_options(item: Any) -> dict[str, object]:
    """Return the options of a pass that are not as by default, without functions that are called back."""
    declared: tuple[Field[Any], ...] = fields(item) if is_dataclass(item) else ()
    hidden = {field.name for field in declared if not field.repr}
    defaults = {field.name: default_of(field) for field in declared}
    return {
        name: value
        for name, value in item.options.items()
        if name not in hidden and (name not in defaults or not _is_equal(value, defaults[name]))
    }


def default_of(field: Field[Any]) -> object:
    """Return the default of a field, or `dataclasses.MISSING`."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def quoted_name(name: str) -> str:
    """Return a name as it stands in text: in quotation marks if it would read as something else."""
    return name if NAME.fullmatch(name) and name not in WORDS else _quoted(name)


def _is_equal(value: object, default: object) -> bool:
    """Whether a value is the default, and of the same type: True is not 1."""
    return type(value) is type(default) and value == default


def _is_sequence(item: object) -> bool:
    return hasattr(item, "flattened")


def _sequence_options(item: Any) -> dict[str, object]:
    info = item.info
    options = {"name": info.name, "opt_level": info.opt_level, "required": info.required}
    default = {"name": "sequential", "opt_level": 0, "required": ()}
    changed = {key: value for key, value in options.items() if value != default[key]}
    return {**changed, "passes": item.passes}


def _text(value: Any) -> _Text:
    match value:
        case None | bool() | int() | float():
            return repr(value)
        case str():
            return _quoted(value)
        case tuple() | list():
            return _Group("[", tuple(map(_text, value)), "]")
        case frozenset() | set():
            return _Group("[", tuple(map(_text, sorted(value, key=option_text))), "]")
        case Mapping():
            return _plain_text(value)
        case _ if _is_registered_sequence(value):
            return quoted_name(value.info.name)
        case _ if _is_sequence(value):
            return _construct(SEQUENTIAL, _sequence_options(value))
        case _ if hasattr(value, "info"):  # a pass
            return _construct(value.info.name, changed_options(value))
        case _ if is_option(value):
            return _construct(type(value).__name__, changed_fields(value))
        case _:
            return f"<{type(value).__name__} {value}>"


def _plain_text(value: Mapping[Any, Any]) -> _Text:
    """Return the text of a mapping: of what `pass_trace.plain_options` makes of passes, or of any other."""
    match value:
        case {"sequence": str(name), "passes": list(passes)}:
            return _construct(SEQUENTIAL, {"name": name, "passes": passes})
        case {"pass": str(name), "options": Mapping() as options}:
            return _construct(name, options)
        case {"option": str(name), "values": Mapping() as values}:
            return _construct(name, values)
        case {"set": list(items)}:
            return _text(items)
        case _:
            return _text(tuple(value.items()))


def _is_registered_sequence(value: Any) -> bool:
    """Whether its name alone stands for a sequence."""
    return _is_sequence(value) and value.info.name in PASSES and PASSES[value.info.name] is value


def _construct(name: str, options: Mapping[str, object]) -> _Text:
    if not options:
        return quoted_name(name)
    return _Group(f"{quoted_name(name)}{{", tuple(_option(key, value) for key, value in options.items()), "}")


def _option(name: str, value: object) -> _Text:
    text = _text(value)
    if isinstance(text, str):
        return f"{name}={text}"
    return _Group(f"{name}={text.opening}", text.items, text.closing)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _rendered(text: _Text, width: int | None) -> str:
    return "\n".join(_lines(text, width))


def _lines(text: _Text, width: int | None) -> Iterator[str]:
    """Yield the text as one line if it fits, else with an item of its outermost group a line."""
    line = _one_line(text)
    if width is None or isinstance(text, str) or len(line) <= width:
        yield line
        return
    yield text.opening
    for position, item in enumerate(text.items):
        *before, last = _lines(item, width - 2)
        yield from (f"  {inner}" for inner in before)
        yield f"  {last}{',' if position + 1 < len(text.items) else ''}"
    yield text.closing


def _one_line(text: _Text) -> str:
    if isinstance(text, str):
        return text
    return f"{text.opening}{', '.join(map(_one_line, text.items))}{text.closing}"
