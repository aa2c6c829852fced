"""A program that breaks the rules of the language is found right after the pass that broke it."""

from __future__ import annotations

from collections.abc import Callable

from intarsia.ir import IRModule
from intarsia.support.errors import VerifyError
from intarsia.transform.instrument.pass_instrument import PassInstrument
from intarsia.transform.pass_info import PassInfo
from intarsia.transform.program_check import check_program


class VerifyAfterPass(PassInstrument):
    """Verifies the program after each pass that changed it.

    Args:
        verify: Raises VerifyError for a broken program; default: the rules of the language and of its
            operators, types of calls included.
        before: Whether to verify also what the first pass is given.

    Raises:
        VerifyError: The program is broken; the message names the pass and shows the complaints in place.
    """

    def __init__(self, verify: Callable[[IRModule], None] = check_program, *, before: bool = True) -> None:
        self._verify = verify
        self._before = before
        self._verified: IRModule | None = None

    def enter_pass_ctx(self) -> None:
        """Forget earlier programs."""
        self._verified = None

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Verify the program if a pass has not done so before."""
        if self._before and mod is not self._verified:
            self._check(mod, f"before pass {info.name}")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Verify the program if the pass changed it."""
        if mod is not self._verified:
            self._check(mod, f"broken by pass {info.name}")

    def _check(self, mod: IRModule, note: str) -> None:
        try:
            self._verify(mod)
        except VerifyError as error:
            error.add_note(note)
            raise
        self._verified = mod
