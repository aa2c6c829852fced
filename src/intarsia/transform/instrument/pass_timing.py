"""How long each pass takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from intarsia.ir import IRModule
from intarsia.transform.instrument.open_runs import OpenRuns
from intarsia.transform.instrument.pass_instrument import PassInstrument
from intarsia.transform.pass_info import PassInfo


@dataclass(slots=True)
class PassTime:
    """One run of a pass, and the passes that ran inside it.

    Attributes:
        name: The pass.
        total: Nanoseconds, with the passes inside.
        inner: Their runs.
    """

    name: str
    total: int = 0
    inner: list[PassTime] = field(default_factory=list)

    @property
    def own(self) -> int:
        """Nanoseconds without the passes inside."""
        return self.total - sum(item.total for item in self.inner)


class PassTimingInstrument(PassInstrument):
    """Times every pass, as a tree: what a sequence runs stands inside it (seed pass_infra).

    The times are there during the context and after it; entering a context again starts anew.

    Args:
        clock: Clock, in nanoseconds.

    Attributes:
        runs: The outermost runs, in order.
    """

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self.runs: list[PassTime] = []
        self._open: OpenRuns[tuple[PassTime, int]] = OpenRuns()

    def enter_pass_ctx(self) -> None:
        """Start anew, unless a pass enters the context that it runs under."""
        if self._open.enter_context():
            self.runs = []

    def exit_pass_ctx(self) -> None:
        """Close what an exception has left open."""
        self._close(*self._open.exit_context())

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Start the clock for a pass."""
        run = PassTime(info.name)
        around = self._open.records
        (around[-1][0].inner if around else self.runs).append(run)
        self._open.push(info.name, (run, self._clock()))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Stop it; passes inside that raised, and were caught, end here too."""
        started, raised = self._open.pop(info.name)
        self._close(*raised, *(() if started is None else (started,)))

    def _close(self, *started: tuple[PassTime, int]) -> None:
        for run, start in started:
            run.total = self._clock() - start

    def render(self) -> str:
        """The tree as text: total, own time, and share of all and of the pass around; "" if nothing ran."""
        whole = sum(item.total for item in self.runs) or 1
        rows = [
            (
                f"{'  ' * depth}{item.name}",
                _ms(item.total),
                _ms(item.own),
                item.total / whole,
                item.total / around,
            )
            for item, depth, around in _walk(self.runs, 0, whole)
        ]
        if not rows:
            return ""
        width = max(len(row[0]) for row in rows)
        lines = [f"{'pass':{width}}  {'total':>12}  {'self':>12}  {'of all':>6}  {'of outer':>8}"]
        lines += [f"{a:{width}}  {b:>12}  {c:>12}  {d:6.1%}  {e:8.1%}" for a, b, c, d, e in rows]
        return "\n".join(lines)


def _walk(runs: list[PassTime], depth: int, around: int) -> Iterator[tuple[PassTime, int, int]]:
    for item in runs:
        yield item, depth, around
        yield from _walk(item.inner, depth + 1, item.total or 1)


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.3f} ms"
