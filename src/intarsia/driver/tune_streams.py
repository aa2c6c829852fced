"""Choose how the result of a tuning run is served: the last stage of a run for throughput or p99."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from intarsia.build import build
from intarsia.driver.result import TuneResult
from intarsia.driver.stream_search.objective import LoadOptions
from intarsia.driver.stream_search.search_streams import requests_under_way, search_streams
from intarsia.driver.stream_search.stored_loads import StoredLoads
from intarsia.ir import IRModule
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Workload
from intarsia.runtime.clones import parts_with_streams
from intarsia.runtime.executable import Executable
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.target.reference import REFERENCE
from intarsia.toolchain.this_host import this_host


def tune_streams(
    result: TuneResult,
    workload: Workload,
    options: LoadOptions,
    seconds: float,
    should_stop: Callable[[], bool],
    database: Database | None,
) -> TuneResult:
    """Measure the winner and each toolchain alone under load, and return the result with the best of them.

    Args:
        result: Result of the run by latency; only programs that it found right take part.
        workload: Program that was tuned, with its inputs.
        options: Load and objective.
        seconds: Time in seconds for the measurements.
        should_stop: Function that returns true to end with the measurements so far.
        database: Database that keeps the measurements, or None.

    Raises:
        DatabaseError: A measurement cannot be kept.
    """
    programs = _programs(result, workload.module)
    inputs, cores = result.self_test.inputs, usable_cores(Path("/"))
    loads = StoredLoads(
        database,
        workload.digest,
        workload.name,
        this_host(),
        requests_under_way(options, cores),
        _identities(result),
    )
    records = search_streams(programs, inputs, options, cores, seconds, should_stop, loads)
    if not records or not records[0].chosen:
        return result
    best = records[0]
    chosen = Executable(**parts_with_streams(programs[best.name].contents, best.choice))
    for program in programs.values():
        program.close()
    choice = best.choice
    note = (
        f"for {options.objective}: {best.name} with {choice.streams} streams of {choice.threads} threads, "
        f"batch {choice.batch}, {best.rate:.0f} requests per second"
    )
    explanation = replace(result.explanation, notes=(*result.explanation.notes, note))
    return replace(result, executable=chosen, streams=records, explanation=explanation)


def _identities(result: TuneResult) -> dict[str, str]:
    """Return the identities of programs by name, equal in all runs: targets, and the plan of the winner."""
    identities = {record.name: record.target for record in result.candidates}
    chosen = result.chosen
    if not chosen.is_whole:
        identities[chosen.name] = f"{chosen.target} {result.plan.candidate.digest}"
    return identities


def _programs(result: TuneResult, module: IRModule) -> dict[str, Executable]:
    """Return the winner by latency, and each toolchain alone that is right, by name."""
    programs = {result.chosen.name: result.executable}
    for record in result.candidates:
        target = Target.parse(record.target) if record.is_whole else None
        if target is None or record.timing is None or target.toolchain == REFERENCE or record.chosen:
            continue
        try:
            programs[record.name] = build(module, target)
        except CompileError:  # it was built in a worker: what it lacks here cannot serve
            continue
    return programs
