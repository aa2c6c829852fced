"""How much memory each pass takes."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

from intarsia.ir import IRModule
from intarsia.transform.instrument.open_runs import OpenRuns
from intarsia.transform.instrument.pass_instrument import PassInstrument
from intarsia.transform.pass_info import PassInfo


@dataclass(frozen=True, slots=True)
class PassMemory:
    """Memory of one run of a pass, in bytes, as Python's allocator sees it (NumPy's arrays included).

    Attributes:
        name: The pass.
        retained: Bytes held after the pass minus bytes held before; negative if less.
        peak: The most that was held during it, above what was held before.
    """

    name: str
    retained: int
    peak: int


@dataclass(slots=True)
class _Running:
    """A pass that has not returned: what was held before it, and at most since."""

    name: str
    before: int
    peak: int


class PassMemoryInstrument(PassInstrument):
    """Measures the memory of every pass. Tracing allocations makes passes two to four times slower.

    Attributes:
        runs: One entry a run, in the order in which the passes returned.
    """

    def __init__(self) -> None:
        self.runs: list[PassMemory] = []
        self._open: OpenRuns[_Running] = OpenRuns()
        self._is_ours = False

    def enter_pass_ctx(self) -> None:
        """Start tracing, unless it runs already, also because a pass enters the context it runs under."""
        if self._open.enter_context():
            self.runs = []
            self._is_ours = not tracemalloc.is_tracing()
            if self._is_ours:
                tracemalloc.start()

    def exit_pass_ctx(self) -> None:
        """Stop tracing if it was started here."""
        self._open.exit_context()
        if self._is_ours and not self._open.is_entered:
            tracemalloc.stop()

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Note what is held; the peak so far counts for the passes around."""
        held = self._note_peak()
        self._open.push(info.name, _Running(info.name, held, held))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Note what is held now, and what was at most."""
        held = self._note_peak()
        run, _ = self._open.pop(info.name)  # passes inside that raised were caught, and have no entry
        if run is not None:
            self.runs.append(PassMemory(info.name, held - run.before, run.peak - run.before))

    def _note_peak(self) -> int:
        """Bytes held now; the peak since the last call goes to all passes that are running."""
        held, peak = tracemalloc.get_traced_memory()
        for entry in self._open.records:
            entry.peak = max(entry.peak, peak)
        tracemalloc.reset_peak()
        return held

    def render(self) -> str:
        """A line a run; "" if nothing ran."""
        if not self.runs:
            return ""
        width = max(len(item.name) for item in self.runs)
        lines = [f"{'pass':{width}}  {'retained':>12}  {'peak':>12}"]
        lines += [f"{r.name:{width}}  {_kib(r.retained):>12}  {_kib(r.peak):>12}" for r in self.runs]
        return "\n".join(lines)


def _kib(count: int) -> str:
    return f"{count / 1024:.1f} KiB"
