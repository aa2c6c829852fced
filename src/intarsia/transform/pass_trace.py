"""The passes that were applied, as plain data; `replay_trace` applies them again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import Field, asdict, dataclass, fields, is_dataclass
from typing import Any, Protocol

from intarsia.ir import IRModule, structural_digest
from intarsia.support.errors import UsageError
from intarsia.support.json_text import parse_json_text
from intarsia.transform.option_type import changed_fields, is_option
from intarsia.transform.pass_info import PassInfo
from intarsia.transform.pass_text import construct_text


class TracedPass(Protocol):
    """What a trace reads of a pass."""

    @property
    def info(self) -> PassInfo:
        """Name, level and constraints."""

    @property
    def options(self) -> Mapping[str, object]:
        """The values of the pass's fields, by name."""


@dataclass(frozen=True, slots=True)
class AppliedPass:
    """One pass that ran.

    Attributes:
        name: Its name.
        options: Its fields; numbers, strings, lists and dicts of such. What is none of these is there as
            text, and cannot be replayed.
        before: Structural digest of the module it was given.
        after: Structural digest of the module it returned.
    """

    name: str
    options: Mapping[str, object]
    before: str
    after: str


class PassTrace:
    """The passes applied under a `PassContext(record=True)`, in order; sequences appear as what is in them.

    Attributes:
        applied: The passes.
    """

    def __init__(self, applied: tuple[AppliedPass, ...] = ()) -> None:
        self.applied = applied
        self._last: tuple[IRModule, str] | None = None
        self._is_inside = False

    def recorded(self, item: TracedPass, before: IRModule, run: Callable[[], IRModule]) -> IRModule:
        """Run a pass and add it; the passes that it runs itself are not added."""
        if self._is_inside:
            return run()
        self._is_inside = True
        try:
            after = run()
        finally:
            self._is_inside = False
        options = plain_options(item)
        self.applied += (AppliedPass(item.info.name, options, self._digest(before), self._digest(after)),)
        return after

    def _digest(self, mod: IRModule) -> str:
        """The module's digest; the digest of the last module is cached."""
        if self._last is None or self._last[0] is not mod:
            self._last = (mod, structural_digest(mod))
        return self._last[1]

    def to_json(self) -> str:
        """JSON text; `from_json` reads it, also in another process."""
        return json.dumps([asdict(item) for item in self.applied], indent=1)

    @classmethod
    def from_json(cls, text: str) -> PassTrace:
        """What `to_json` wrote.

        Raises:
            UsageError: The text is not such a trace.
        """
        try:
            return cls(tuple(AppliedPass(**item) for item in parse_json_text(text)))
        except (ValueError, TypeError) as error:
            raise UsageError(f"not a recorded pass trace: {error}") from None

    def __str__(self) -> str:
        """A line a pass; those that changed nothing say so."""
        return "\n".join(
            f"{construct_text(item.name, item.options)}  "
            + ("unchanged" if item.before == item.after else f"-> {item.after[:12]}")
            for item in self.applied
        )


def plain_options(item: TracedPass) -> dict[str, object]:
    """The options of a pass as JSON holds them; `replay.made_pass` makes the pass again.

    Objects of registered option types are there by name, with their fields; clocks and functions that are
    called back are left out (`transform.option_type`).
    """
    known: tuple[Field[Any], ...] = fields(item) if is_dataclass(item) else ()
    hidden = {each.name for each in known if not each.repr}
    return {name: _plain(value) for name, value in item.options.items() if name not in hidden}


def _plain(value: Any) -> object:
    """A value as JSON holds it."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case _ if hasattr(value, "flattened"):  # a sequence
            return {"sequence": value.info.name, "passes": [_plain(item) for item in value.passes]}
        case _ if hasattr(value, "info"):  # a pass
            return {"pass": value.info.name, "options": plain_options(value)}
        case _ if is_option(value):
            return {"option": type(value).__name__, "values": _plain(changed_fields(value))}
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case tuple() | list():
            return [_plain(item) for item in value]
        case frozenset() | set():
            return {"set": sorted((_plain(item) for item in value), key=str)}
        case _:
            return {"not plain": f"{type(value).__name__} {value}"}
