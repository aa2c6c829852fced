"""What watches passes: five hooks, called by the `PassContext` that holds the instrument."""

from __future__ import annotations

from typing import TypeVar

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform.instrument_list import HOOKS
from intarsia.transform.pass_info import PassInfo

C = TypeVar("C")


class PassInstrument:
    """Hooks around passes (seed pass_infra, Pass Instrument); each does nothing unless overridden.

    A class may have a sixth, `run_diagnostic(diagnostic)`: it is called with each `ctx.diagnose` of a pass.

    Under one context, instruments are called in the order of its list:

        enter_pass_ctx                       the context is entered
            should_run, all of them          unless the pass is in `required_pass`
            run_before_pass, all of them     if every should_run said yes
            the pass                         passes inside it come here, in the same way
            run_after_pass, all of them      unless the pass raised
        exit_pass_ctx                        the context is left, by an exception too

    An exception in `enter_pass_ctx`: instruments entered before it are exited, in reverse order; later ones
    never start; the context is not entered. In `exit_pass_ctx`: later ones are not exited. In both cases the
    context forgets its instruments. An exception anywhere else goes up at once, and leaving the context exits
    all of them.
    """

    @property
    def name(self) -> str:
        """For people; the class's name."""
        return type(self).__name__

    def enter_pass_ctx(self) -> None:
        """The context is being entered."""

    def exit_pass_ctx(self) -> None:
        """The context is being left."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Whether the pass is to run on the module; one no is enough."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """The pass is about to run on the module."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """The pass has returned the module."""


def pass_instrument(cls: type[C]) -> type[C]:
    """Make an instrument of a class that has some of the hooks; each instance is a `PassInstrument`.

    >>> @pass_instrument
    ... class Count:
    ...     def __init__(self):
    ...         self.passes = 0
    ...     def run_after_pass(self, mod, info):
    ...         self.passes += 1

    Raises:
        UsageError: The class has no hook, as where its name is misspelt.
    """
    if issubclass(cls, PassInstrument):
        return cls
    if not any(hasattr(cls, hook) for hook in HOOKS):
        raise UsageError(
            f"class {cls.__name__} has none of the hooks of an instrument",
            help=f"they are: {', '.join(HOOKS)}",
        )
    made = type(cls.__name__, (cls, PassInstrument), {"__doc__": cls.__doc__, "__module__": cls.__module__})
    made.__qualname__ = cls.__qualname__
    return made
