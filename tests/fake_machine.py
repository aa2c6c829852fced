"""A machine whose probes take the time that a model says, by a clock that they set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from intarsia.native.calibration import Probe, ProbeKind
from intarsia.native.machine.isa import Isa
from intarsia.target.machine_model import MachineModel

HERTZ = 2e9
_LOOP_CYCLES = 4000.0


def probe_rates(model: MachineModel, vector_bytes: int, cores: int) -> dict[ProbeKind, float]:
    """What the probes of a machine do in a cycle."""
    parallel = _LOOP_CYCLES / cores + model.barrier_cycles
    of_several = {
        ProbeKind.BUSY_TICK: float(cores),
        ProbeKind.BUSY_THIRD: cores * model.busy_third_bandwidth,
        ProbeKind.BUSY_MEMORY: cores * model.busy_memory_bandwidth,
        ProbeKind.SERIAL: 1 / _LOOP_CYCLES,
        ProbeKind.PARALLEL: 1 / parallel,
    }
    return {
        ProbeKind.TICK: 1.0,
        ProbeKind.CHAIN: 1 / model.fma_latency,
        ProbeKind.SUMS: model.fma_bytes / vector_bytes,
        ProbeKind.FIRST: model.first_bandwidth,
        ProbeKind.SECOND: model.second_bandwidth,
        ProbeKind.THIRD: model.third_bandwidth,
        ProbeKind.MEMORY: model.memory_bandwidth,
        ProbeKind.SMALL_PAGES: 1.0,
        ProbeKind.HUGE_PAGES: model.huge_page_speedup,
        **(of_several if cores > 1 else {}),
    }


@dataclass
class FakeMachine:
    """Probes that take a number of cycles each, most of them longer, as on a busy machine.

    Attributes:
        per_cycle: Work of each probe in a cycle.
        cycles: Cycles of a run.
        now: Time in seconds.
        runs: Number of runs so far.
        interrupted_at: Number of the run that is interrupted; 0 for none.
    """

    per_cycle: Mapping[ProbeKind, float]
    cycles: float = 1e5
    now: float = 0.0
    runs: int = 0
    interrupted_at: int = 0

    def probes(self) -> dict[ProbeKind, Probe]:
        return {
            kind: Probe(self._run(self.cycles / HERTZ), rate * self.cycles)
            for kind, rate in self.per_cycle.items()
        }

    @contextmanager
    def of_isa(self, _isa: Isa) -> Iterator[Mapping[ProbeKind, Probe]]:
        """Stand in for `machine_probes`."""
        yield self.probes()

    def _run(self, seconds: float) -> Callable[[], None]:
        def run() -> None:
            self.runs += 1
            if self.runs == self.interrupted_at:
                raise KeyboardInterrupt
            self.now += seconds * (1 if self.runs % 5 == 0 else 1.5)  # most runs are disturbed

        return run

    def clock(self) -> float:
        return self.now
