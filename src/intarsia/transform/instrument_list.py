"""The instruments of a context, as people give them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from intarsia.support.errors import UsageError

InstrumentT = TypeVar("InstrumentT")
HOOKS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")
"""What an instrument may have."""


def checked_instruments(instruments: Iterable[InstrumentT]) -> list[InstrumentT]:
    """The instruments as a list.

    Raises:
        UsageError: One instrument instead of a list, or something in it that is no instrument.
    """
    if not isinstance(instruments, Iterable):
        raise UsageError(
            f"instruments is of type {type(instruments).__name__}, expected a list of instruments",
            help="write [...] around it",
        )
    listed = list(instruments)
    for item in listed:
        if isinstance(item, type):
            raise UsageError(
                f"instruments has the class {item.__name__}, expected an instance", help="add parentheses"
            )
        missing = [hook for hook in HOOKS if not callable(getattr(item, hook, None))]
        if missing:
            raise UsageError(
                f"instruments has an entry of type {type(item).__name__}, which is no instrument",
                help="write @pass_instrument above the class, or make it a subclass of PassInstrument",
            )
    return listed
