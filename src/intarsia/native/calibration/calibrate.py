"""Calibration: run all probes in turn, keep the best time of each, and derive a machine model from them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from intarsia.native.calibration.probes import Probe, ProbeKind
from intarsia.target.machine_model import MachineModel

_SECONDS: Final = 7.0
"""Seconds after which no round begins; a round takes a tenth of a second."""
_MOST_ROUNDS: Final = 100
_RUNS: Final = 3
"""Number of runs of a probe in a round: the first one fills the cache that the others read."""
_DIGITS: Final = 2
"""Significant digits that are kept: more are noise."""
_AT_ONCE: Final = 0.9
"""Minimum share of the cycles of all cores that a process must get for values of all cores to count."""
_SHARED_LOOPS: Final = 0.95
"""Maximum time of loops on all cores, relative to one thread, at which other threads took part in them."""

# A value is replaced only if it differs by more than this share of the present one. Repeated calibrations of
# an AMD EPYC with two busy cores differed by 2 % in the pipes, a fifth in the caches of a core, a third in
# what neighbours share. So another one leaves the model, and what was measured with it, as it is.
_TOLERANCE: Final = 0.1
_CACHE_TOLERANCE: Final = 0.25
_SHARED_TOLERANCE: Final = 0.35
_TOLERANCES: Final = {
    "first_bandwidth": _CACHE_TOLERANCE,
    "second_bandwidth": _CACHE_TOLERANCE,
    "third_bandwidth": _SHARED_TOLERANCE,
    "busy_third_bandwidth": _SHARED_TOLERANCE,
    "memory_bandwidth": _SHARED_TOLERANCE,
    "busy_memory_bandwidth": _SHARED_TOLERANCE,
    "huge_page_speedup": _SHARED_TOLERANCE,
    "barrier_cycles": _SHARED_TOLERANCE,
}

_BUSY: Final = "the other cores were busy"
_ONE_CORE: Final = "there is one core"


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a calibration has measured.

    Attributes:
        model: The model with what has changed.
        measured: Measured values by the names of the model's fields, before rounding.
        missing: Why a value was not measured, by its name; it stays as it was.
        hertz: Cycles per second of a core.
        seconds: Duration of the measurement.
    """

    model: MachineModel
    measured: Mapping[str, float]
    missing: Mapping[str, str]
    hertz: float
    seconds: float


def calibrate(
    probes: Mapping[ProbeKind, Probe],
    present: MachineModel,
    vector_bytes: int,
    cores: int,
    clock: Callable[[], float] = time.perf_counter,
    on_round: Callable[[int, int], object] = lambda _done, _most: None,
) -> Calibration:
    """Measure a machine.

    Other processes disturb most runs on a busy machine, so the best of many short runs counts, spread over
    all of the time.

    Args:
        probes: Probes of the machine.
        present: Model in use; values that are about the same keep their numbers.
        vector_bytes: Size of the vectors of the probes, in bytes.
        cores: Number of cores that the probes of all cores use.
        clock: Clock that returns seconds.
        on_round: Called with the number of rounds that are done, and of all rounds.
    """
    started = clock()
    best = dict.fromkeys(probes, math.inf)
    for done in range(1, _MOST_ROUNDS + 1):
        for kind, probe in probes.items():
            best[kind] = min(best[kind], *(_seconds(probe, clock) for _ in range(_RUNS)))
        spent = clock() - started
        on_round(done, _MOST_ROUNDS if spent < _SECONDS else done)
        if spent >= _SECONDS:
            break
    rates = {kind: probes[kind].amount / seconds for kind, seconds in best.items()}
    measured, missing = _values(rates, vector_bytes, cores)
    # Pipes may join for wide vectors, so that fewer start at once than there are; more are certainly there.
    measured["fma_pipes"] = max(present.fma_pipes, measured["fma_bytes"] / vector_bytes)
    return Calibration(
        _adopted(present, measured),
        MappingProxyType(measured),
        MappingProxyType(missing),
        rates[ProbeKind.TICK],
        clock() - started,
    )


def _seconds(probe: Probe, clock: Callable[[], float]) -> float:
    began = clock()
    probe.run()
    return clock() - began


def _values(
    rates: Mapping[ProbeKind, float], vector_bytes: int, cores: int
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the values that follow from rates per second, and why others do not."""
    hertz = rates[ProbeKind.TICK]
    per_cycle = {kind: rate / hertz for kind, rate in rates.items()}
    values = {
        "fma_latency": 1 / per_cycle[ProbeKind.CHAIN],
        "fma_bytes": per_cycle[ProbeKind.SUMS] * vector_bytes,
        "first_bandwidth": per_cycle[ProbeKind.FIRST],
        "second_bandwidth": per_cycle[ProbeKind.SECOND],
        "third_bandwidth": per_cycle[ProbeKind.THIRD],
        "memory_bandwidth": per_cycle[ProbeKind.MEMORY],
    }
    missing = {}
    if {ProbeKind.HUGE_PAGES, ProbeKind.SMALL_PAGES} <= per_cycle.keys():
        values["huge_page_speedup"] = per_cycle[ProbeKind.HUGE_PAGES] / per_cycle[ProbeKind.SMALL_PAGES]
    else:
        missing["huge_page_speedup"] = "the system has no huge pages"
    together = {"busy_third_bandwidth": ProbeKind.BUSY_THIRD, "busy_memory_bandwidth": ProbeKind.BUSY_MEMORY}
    has_all_cores = per_cycle.get(ProbeKind.BUSY_TICK, 0.0) >= _AT_ONCE * cores
    for name, kind in together.items():
        if cores > 1 and has_all_cores and kind in per_cycle:
            values[name] = per_cycle[kind] / cores
        else:
            missing[name] = _ONE_CORE if cores == 1 else "the cache is too small" if has_all_cores else _BUSY
    if ProbeKind.PARALLEL not in per_cycle:
        missing["barrier_cycles"] = _ONE_CORE
        return values, missing
    serial, parallel = (1 / per_cycle[kind] for kind in (ProbeKind.SERIAL, ProbeKind.PARALLEL))
    if parallel <= _SHARED_LOOPS * serial:
        values["barrier_cycles"] = max(1.0, parallel - serial / cores)
    else:
        missing["barrier_cycles"] = _BUSY
    return values, missing


def _adopted(present: MachineModel, measured: Mapping[str, float]) -> MachineModel:
    """Return the model with the measured values that differ from the present ones by more than noise."""
    changes: dict[str, float] = {}
    for name, value in measured.items():
        before = getattr(present, name)
        if abs(value - before) > _TOLERANCES.get(name, _TOLERANCE) * before:
            rounded = _rounded(value)
            changes[name] = max(1, round(rounded)) if isinstance(before, int) else rounded
    return replace(present, **changes)  # type: ignore[arg-type]  # integers for fields of integers


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
