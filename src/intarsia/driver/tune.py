"""`tune`: find the fastest right way to run a model on this machine.

Imports stand inside the functions: `import intarsia` binds `tune` without loading the compiler.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt
    from onnx import ModelProto

    from intarsia.driver.entrant import Entrant
    from intarsia.driver.records import Progress
    from intarsia.driver.result import TuneResult
    from intarsia.ir import IRModule
    from intarsia.measure.database import Database
    from intarsia.measure.measure_input import Workload
    from intarsia.measure.testbed import Testbed
    from intarsia.runtime.executable import Executable
    from intarsia.target import Host, Target

SEARCH_SHARE = 0.6
"""Share of the budget for the search of partitions; the rest is for the race of the best."""


def tune(
    model: str | Path | bytes | ModelProto | IRModule,
    *,
    budget: str | float = "60s",
    trials: int | None = None,
    targets: Sequence[Target | str] | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    inputs: Mapping[str, npt.NDArray[Any]] | None = None,
    seed: int = 0,
    threads: int | None = None,
    database: Database | None = None,
    cluster: str | None = None,
    partitions: bool = True,
    on_progress: Callable[[Progress], object] | None = None,
    on_note: Callable[[str], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> TuneResult:
    """Find the fastest right way to run a model: one toolchain for all of it, or several for parts of it.

    Candidates are built and run in processes of their own: one that crashes, hangs or takes all memory
    loses only itself.

    Args:
        model: What `from_onnx` takes, or a module.
        budget: Time for searching partitions and for the race, in seconds or as text ("90s", "5m").
        trials: Candidates that are measured at most; all if not given.
        targets: Candidates; every registered toolchain if not given.
        shapes: Shapes of inputs to fix, by name.
        inputs: Arrays to verify and measure with, by name; seeded random ones for the others.
        seed: Of random inputs and of the order of measurement.
        threads: Threads of each candidate; all usable cores if not given.
        database: Where measurements are looked up and kept.
        cluster: Address of a Dask scheduler whose workers measure, such as "tcp://10.0.0.1:8786".
        partitions: Whether parts of the model may be given to different toolchains.
        on_progress: Told what is being done.
        on_note: Told on the side, when another process keeps this machine busy for example.
        should_stop: Asked again and again; a yes ends the run with what has been measured.

    Returns:
        The winner and all candidates. A candidate that is wrong, refuses the model or fails cannot win.

    Raises:
        UsageError: Bad budget, targets, shapes or inputs.
        ModelError: The model is invalid or unsupported, or no candidate computes it right.
        DatabaseError: A measurement cannot be kept.
    """
    from intarsia.driver.budget import parse_budget
    from intarsia.driver.contest import Contest
    from intarsia.driver.partition import LEAST_SECONDS, placement_entrants, search_partitions
    from intarsia.driver.records import Progress, Stage
    from intarsia.driver.result import TuneResult
    from intarsia.frontend.onnx import from_onnx
    from intarsia.ir import IRModule
    from intarsia.measure.measure_input import Workload
    from intarsia.measure.measurer import MeasureBudget, Measurer
    from intarsia.measure.work import random_operators
    from intarsia.runtime.self_test import SelfTest
    from intarsia.toolchain.this_host import this_host

    start = time.perf_counter()
    seconds = parse_budget(budget)
    chosen = _targets(targets, threads)
    report = on_progress or _silent
    report(Progress(Stage.IMPORT))
    module = model if isinstance(model, IRModule) else from_onnx(model, shapes)
    name = str(module.attrs.get("name", "model"))
    workload = Workload(module, name, dict(inputs or {}))
    host = this_host()
    with closing(_testbed(cluster, host, seed, on_note)) as testbed:
        report(Progress(Stage.REFERENCE))
        folder = testbed.prepare(workload)
        stop = should_stop or _never
        drawn = random_operators(module)
        measurer = Measurer(testbed, database)
        contest = Contest(measurer, report, stop, drawn)
        # Each toolchain alone is measured whatever the time: the result is never worse than the best of them.
        contest.enter(_entrants(workload, chosen), MeasureBudget(trials=trials or math.inf))
        search_seconds = seconds * SEARCH_SHARE if partitions else 0.0
        able = [target for target in chosen if _is_engine(target)]
        found = None
        if len(able) > 1 and search_seconds >= LEAST_SECONDS and not stop() and trials is None and not drawn:
            found, _ = search_partitions(measurer, workload, able, search_seconds, report)
            contest.enter(placement_entrants(workload, found), MeasureBudget())
        winner = contest.decide(seconds - search_seconds, seed)
        executable, gate, arrays = _executable(testbed, winner), folder.gate(), folder.inputs()
        return TuneResult(
            model=name,
            executable=executable,
            candidates=contest.records(),
            reference=gate.reference,
            self_test=SelfTest(
                tuple(arrays[item.name].copy() for item in executable.inputs),
                tuple(array.copy() for array in gate.expected),
            ),
            host=host,
            seconds=time.perf_counter() - start,
            seed=seed,
            stopped=stop(),
        )


def _is_engine(target: Target) -> bool:
    """Whether a target can be given parts of a model; the reference is the last resort in any case."""
    from intarsia.toolchain import usable_toolchains

    usable = {each.name for each in usable_toolchains()} - {"reference"}
    return target.toolchain in usable


def _testbed(cluster: str | None, host: Host, seed: int, on_note: Callable[[str], None] | None) -> Testbed:
    from intarsia.measure.testbed import LocalTestbed

    if cluster is None:
        return LocalTestbed.open(host, seed=seed, on_wait=on_note)
    from intarsia.measure.testbed.dask_cluster import connect

    return connect(cluster, host, seed=seed, on_note=on_note)


def _entrants(workload: Workload, targets: Sequence[Target]) -> list[Entrant]:
    """The whole model on each target."""
    from intarsia.driver.entrant import Entrant
    from intarsia.driver.records import Status
    from intarsia.measure.candidate_kind import WHOLE
    from intarsia.measure.gate import SMALL
    from intarsia.measure.measure_input import MeasureInput
    from intarsia.measure.work import work_of
    from intarsia.support.errors import MissingToolchainError
    from intarsia.toolchain import toolchain

    is_small = work_of(workload.module).multiply_adds <= SMALL
    entrants = []
    for target in targets:
        refusal, status = "", Status.UNAVAILABLE
        try:
            toolchain(str(target.toolchain))
        except MissingToolchainError as error:
            refusal = f"{error.problem} ({error.help})" if error.help else error.problem
        if target.toolchain == "reference" and not is_small and len(targets) > 1:
            refusal, status = "not tried: it takes far too long on a model of this size", Status.SLOW
        options = " ".join(f"{key}={value}" for key, value in target.options)
        name = f"{target.toolchain} {options}".strip()
        entrants.append(Entrant(name, MeasureInput(workload, target, WHOLE), refusal, status))
    return entrants


def _executable(testbed: Testbed, winner: Entrant) -> Executable:
    """The winner, in this process: as it was built for the race, or built here."""
    from intarsia.build import build
    from intarsia.measure.candidate_kind import instantiate
    from intarsia.runtime.artifact_load import load

    artifact = testbed.artifact(winner.input)
    if artifact is not None:
        return load(artifact)
    measured = winner.input
    return build(instantiate(measured.workload.module, measured.target, measured.candidate))


def _targets(targets: Sequence[Target | str] | None, threads: int | None) -> tuple[Target, ...]:
    """The candidates' targets; without a request, those that are unusable here take part to say why."""
    from intarsia.support.errors import UsageError
    from intarsia.target import Target
    from intarsia.toolchain import installed_toolchains

    if targets is None:
        chosen = [Target.for_toolchain(status.name) for status in installed_toolchains()]
    else:
        chosen = [item if isinstance(item, Target) else Target.parse(item) for item in targets]
    if not chosen:
        raise UsageError(
            "there is no target to tune for", help="pass at least one, or none for all toolchains"
        )
    unnamed = [str(target) for target in chosen if target.toolchain is None]
    if unnamed:
        raise UsageError(
            f"the target {unnamed[0]!r} names no toolchain", help='such as "cpu -toolchain=openvino"'
        )
    if threads is not None:
        chosen = [target.with_options(threads=threads) for target in chosen]
    return tuple(dict.fromkeys(chosen))


def _silent(_: Progress) -> None:
    return None


def _never() -> bool:
    return False
