"""Parsing of pass settings: `--pass-config KEY=VALUE` and `--disable-pass NAME`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import is_dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from intarsia.support.errors import UsageError
from intarsia.support.json_text import parse_json_text
from intarsia.support.plain_record import from_plain, to_plain

if TYPE_CHECKING:
    from intarsia.transform import PassContext
    from intarsia.transform.pass_config import ConfigOption

_HELP = "write KEY=VALUE, such as FuseOps.max_depth=16 or tir.UnrollLoop.auto_max_step=64"


def parse_pass_context(config: Iterable[str], disabled: Iterable[str]) -> PassContext:
    """Parse a pass context.

    Args:
        config: Texts `KEY=VALUE`; the key of an option, or of an option with fields and one of these. Values
            that are no text are JSON.
        disabled: Names of passes or pipelines that are not run.

    Raises:
        UsageError: A text is malformed, a key or name does not exist, or a value is of another type.
    """
    from intarsia.transform import PassContext

    context = PassContext(disabled_pass=tuple(disabled), config=_parse_config(config))
    for name in context.disabled_pass:
        _check_name(name)
    return context


def _check_name(name: str) -> None:
    from intarsia.transform import pass_names, pipeline_names

    names = (*pass_names(), *pipeline_names())
    if name not in names:
        close = get_close_matches(name, names, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "intarsia passes lists the passes"
        raise UsageError(f"--disable-pass {name!r} is no pass", help=hint)


def _parse_config(texts: Iterable[str]) -> dict[str, object]:
    from intarsia.transform import PassContext

    options = {option.key: option for option in PassContext.list_configs()}
    fields: dict[str, dict[str, Any]] = {}
    values: dict[str, object] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator:
            raise UsageError(f"--pass-config {text!r} has no value", help=_HELP)
        parent, _, field = key.rpartition(".")
        option = options.get(key)
        if option is not None and not is_dataclass(option.type):
            values[key] = value if option.type is str else _parse_value(text, value)
        elif option is not None:
            fields.setdefault(key, {}).update(_parse_fields(text, value))
        elif parent in options and is_dataclass(options[parent].type):
            fields.setdefault(parent, {})[field] = _parse_value(text, value)
        else:
            raise UsageError(
                f"--pass-config {text!r} has the unknown key {key!r}",
                help=f"the keys are: {', '.join(options)}",
            )
    return values | {key: _with_fields(options[key], changes) for key, changes in fields.items()}


def _parse_value(text: str, value: str) -> Any:
    try:
        return parse_json_text(value)
    except ValueError:
        raise UsageError(
            f"--pass-config {text!r} has a value that is neither a number, nor true or false", help=_HELP
        ) from None


def _parse_fields(text: str, value: str) -> dict[str, Any]:
    fields = _parse_value(text, value)
    if not isinstance(fields, dict):
        raise UsageError(
            f"--pass-config {text!r} sets an option with fields to one value",
            help='write KEY.FIELD=VALUE, or fields as JSON: KEY={"FIELD": VALUE}',
        )
    return fields


def _with_fields(option: ConfigOption[object], changes: dict[str, Any]) -> object:
    """Return the default of an option with changed fields.

    Raises:
        UsageError: There is no such field, or a value is of another type.
    """
    plain = to_plain(option.default)
    unknown = next((name for name in changes if name not in plain), None)
    if unknown is not None:
        raise UsageError(
            f"config key {option.key!r} has no field {unknown!r}", help=f"its fields: {', '.join(plain)}"
        )
    try:
        return from_plain(option.type, {**plain, **changes}, option.key)
    except ValueError as error:
        raise UsageError(f"--pass-config: {error}") from error
