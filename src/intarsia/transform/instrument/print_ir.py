"""Program text before and after passes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection

from intarsia.ir import IRModule
from intarsia.transform.instrument.open_runs import OpenRuns
from intarsia.transform.instrument.pass_instrument import PassInstrument
from intarsia.transform.name_list import name_list
from intarsia.transform.pass_info import PassInfo


class PrintBefore(PassInstrument):
    """Writes the program before passes (seed pass_infra, PrintIRBefore).

    Args:
        passes: Names of the passes; None is every pass.
        write: Takes the text; default: standard output.

    Raises:
        UsageError: A string instead of a list of names.
    """

    def __init__(
        self, passes: Collection[str] | None = None, write: Callable[[str], object] | None = None
    ) -> None:
        self._passes = None if passes is None else name_list("passes", passes)
        self._write = write

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Write the program if the pass is one of those."""
        self._show(mod, info, "before")

    def _show(self, mod: IRModule, info: PassInfo, when: str) -> None:
        if self._passes is None or info.name in self._passes:
            write = sys.stdout.write if self._write is None else self._write
            write(f"# {when} {info.name}\n{mod}\n")


class PrintAfter(PrintBefore):
    """Writes the program after passes (seed pass_infra, PrintAfter); arguments as for `PrintBefore`."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Nothing."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Write the program if the pass is one of those."""
        self._show(mod, info, "after")


class PrintChanged(PrintBefore):
    """Writes the program after passes that returned another one; arguments as for `PrintBefore`.

    A sequence that returns what its last pass has returned is left out: the program is written already.
    """

    def __init__(
        self, passes: Collection[str] | None = None, write: Callable[[str], object] | None = None
    ) -> None:
        super().__init__(passes, write)
        self._open: OpenRuns[IRModule] = OpenRuns()
        self._last: IRModule | None = None

    def enter_pass_ctx(self) -> None:
        """Note the context, which a pass may enter again."""
        self._open.enter_context()

    def exit_pass_ctx(self) -> None:
        """Forget the passes that an exception has left open."""
        self._open.exit_context()

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Remember what the pass is given."""
        self._open.push(info.name, mod)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Write the program if it is another one."""
        before, _ = self._open.pop(info.name)
        if mod is not before and mod is not self._last:
            self._show(mod, info, "after")
            self._last = mod
