"""Stopping a sequence after one of its passes."""

from __future__ import annotations

from intarsia.ir import IRModule
from intarsia.transform.instrument.pass_instrument import PassInstrument
from intarsia.transform.pass_info import PassInfo


class StopAfter(PassInstrument):
    """Skips all passes that start after a pass has returned for the first time.

    Passes of the context's `required_pass` run all the same, because no instrument is called about them.

    Args:
        pass_name: Name of the last pass that runs.

    Attributes:
        is_stopped: Whether the pass has returned.
    """

    def __init__(self, pass_name: str) -> None:
        self._pass_name = pass_name
        self.is_stopped = False

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Whether the pass has not returned yet."""
        return not self.is_stopped

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Stop if it was the pass."""
        self.is_stopped = self.is_stopped or info.name == self._pass_name
