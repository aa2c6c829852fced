"""Applying the passes of a trace again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from intarsia.ir import IRModule, structural_digest
from intarsia.support.errors import UsageError
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.option_type import made_option
from intarsia.transform.pass_syntax.read_passes import get_pass
from intarsia.transform.pass_trace import PassTrace
from intarsia.transform.sequential import Sequential


@dataclass(eq=False)
class ReplayError(UsageError):
    """A trace that does not lead where it led when it was recorded."""


def replay_trace(trace: PassTrace, mod: IRModule) -> IRModule:
    """Apply the passes of a trace, found by name, and check that each makes what it made then.

    Raises:
        ReplayError: The module is another one than was recorded, or a pass now makes something else of it.
        UsageError: A pass is not registered, or an option of it was no plain data.
    """
    for position, item in enumerate(trace.applied):
        _compare(mod, item.before, f"pass {position} ({item.name}) was given another program")
        try:
            applied = made_pass(item.name, item.options)
        except UsageError as error:
            error.add_note(f"pass {position} of the trace; what replays it has to register it first")
            raise
        mod = applied(mod)
        _compare(mod, item.after, f"pass {position} ({item.name}) now makes another program")
    return mod


def _compare(mod: IRModule, digest: str, problem: str) -> None:
    replayed = structural_digest(mod)
    if replayed != digest:
        raise ReplayError(
            f"{problem}: digest {replayed[:12]}, recorded {digest[:12]}",
            help="replay on the module, and with the version of the passes, that the trace was recorded with",
        )


def made_pass(name: str, options: Mapping[str, object]) -> Pass:
    """The pass of a name with options as `plain_options` gives them.

    Raises:
        ReplayError: An option was no plain data.
        UsageError: There is no such pass, or it has no such option.
    """
    return get_pass(name, **{key: _option(value) for key, value in options.items()})


def _option(value: object) -> object:
    """A value as a pass holds it: lists are tuples, and passes and objects inside a pass are such again."""
    match value:
        case list():
            return tuple(map(_option, value))
        case {"set": list(items)}:
            return frozenset(map(_option, items))
        case {"not plain": str(text)}:
            raise ReplayError(
                f"an option was no plain data, and cannot be made again: {text}",
                help="give passes that are to be replayed numbers, strings, and tuples of such",
            )
        case {"sequence": str(name), "passes": list(passes)}:
            return Sequential([cast("Pass", _option(item)) for item in passes], name=name)
        case {"pass": str(name), "options": dict(options)}:
            return made_pass(name, options)
        case {"option": str(name), "values": dict(values)}:
            return made_option(name, {key: _option(item) for key, item in values.items()})
        case _:
            return value
