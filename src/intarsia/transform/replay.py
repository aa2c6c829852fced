"""Applying the passes of a trace again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from intarsia.ir import IRModule, structural_digest
from intarsia.support.errors import UsageError
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.pass_registry import get_pass
from intarsia.transform.pass_trace import PassTrace


@dataclass(eq=False)
class ReplayError(UsageError):
    """A trace that does not lead where it led when it was recorded."""


def replay_trace(trace: PassTrace, mod: IRModule) -> IRModule:
    """Apply the passes of a trace, found by name, and check that each makes what it made then.

    Raises:
        ReplayError: The module is another one than was recorded, or a pass now makes something else of it.
        UsageError: A pass is not registered.
    """
    for position, item in enumerate(trace.applied):
        _compare(mod, item.before, f"pass {position} ({item.name}) was given another program")
        mod = _made(item.name, item.options)(mod)
        _compare(mod, item.after, f"pass {position} ({item.name}) now makes another program")
    return mod


def _compare(mod: IRModule, digest: str, problem: str) -> None:
    found = structural_digest(mod)
    if found != digest:
        raise ReplayError(
            f"{problem}: digest {found[:12]}, recorded {digest[:12]}",
            help="replay on the module, and with the version of the passes, that the trace was recorded with",
        )


def _made(name: str, options: Mapping[str, object]) -> Pass:
    return get_pass(name, **{key: _option(value) for key, value in options.items()})


def _option(value: object) -> object:
    """A value as a pass holds it: lists are tuples, and a pass inside a pass is one."""
    match value:
        case list():
            return tuple(map(_option, value))
        case {"pass": str(name), "options": dict(options)}:
            return _made(name, options)
        case _:
            return value
