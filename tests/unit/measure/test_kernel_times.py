"""The times of native's kernels within candidates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from math import inf, isfinite
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from intarsia.autoschedule.extraction import extract_tasks
from intarsia.build import build
from intarsia.ir import Constant, Function, IRModule, TensorType, Var
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.database import Database
from intarsia.measure.kernel_times import time_kernels, timed_inputs
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer
from intarsia.measure.runner import Runner
from intarsia.measure.testbed import LocalTestbed
from intarsia.measure.workers import TaskLimits, Workers
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.runtime.artifact_format import ArtifactFormat
from intarsia.target import Host, Target
from intarsia.toolchain.native.kernel import NativeKernel
from intarsia.toolchain.native.plan import planned_region

NATIVE = Target("cpu -toolchain=native -threads=1")


def program() -> IRModule:
    """Two equal products, and a softmax."""
    x = Var("x", checked_type=TensorType.of(np.zeros((16, 16), np.float32)))
    weight = Constant(np.eye(16, dtype=np.float32))
    found = call("MatMul", call("MatMul", x, weight), weight)
    return IRModule.from_expr(Function((x,), call("Softmax", found, axis=-1)))


def saved(folder: Path, target: Target) -> tuple[Path, list[str]]:
    """An artifact, and the keys of its groups if native made it."""
    with build(partition_whole(program(), target)) as executable:
        executable.save(folder, format=ArtifactFormat.DIRECTORY)
        kernels = [
            kernel
            for made in executable.kernels
            if isinstance(made, NativeKernel)
            for kernel in planned_region(made.source).plan.kernels
        ]
    return folder, [kernel.rule_group for kernel in kernels]


def test_kernels_are_timed_by_group_candidate_by_candidate(tmp_path: Path) -> None:
    native, groups = saved(tmp_path / "native", NATIVE)
    reference, _ = saved(tmp_path / "reference", Target("cpu -toolchain=reference"))
    asked = (*dict.fromkeys(groups), "0123456789ab")
    assert len(asked) == 3, "equal products are one group"
    found = time_kernels((native, tmp_path / "nothing", reference), asked)
    first, second, third = found.parts
    assert all(0 < seconds < inf for seconds in first.costs[:2])
    assert first.costs[2] == 0, "no kernel computes that group"
    assert (second.error, second.costs) == (MeasureError.LOAD, ()), "a candidate that does not load"
    assert third.costs == (0, 0, 0), "kernels of other toolchains have no groups"


def test_kernels_are_timed_by_their_computation_too(tmp_path: Path) -> None:
    folder, groups = saved(tmp_path / "native", NATIVE)
    tasks = extract_tasks(program(), NATIVE)
    assert [task.weight for task in tasks] == [2, 1]
    (timed,) = time_kernels((folder,), (*(task.key for task in tasks), *dict.fromkeys(groups))).parts
    product, softmax, *by_group = timed.costs
    assert [product, softmax] == by_group, "equal products are one computation, and one group"
    assert min(product, softmax) > 0


def test_times_count_for_candidates_beside_each_other() -> None:
    items = [MeasureInput(Workload(program()), NATIVE, WHOLE)] * 2
    (alone,), (beside, _) = timed_inputs(items[:1], ["a"]), timed_inputs(items, ["a"])
    (other,) = timed_inputs(items[:1], ["b"])
    assert len({alone.candidate.digest, beside.candidate.digest, other.candidate.digest}) == 3


class CrashingWorkers:
    """Workers whose process ends where it times a bad candidate; others take as many seconds as there are."""

    def __init__(self, *bad: Path) -> None:
        self.bad, self.timed = set(bad), list[tuple[Path, ...]]()

    def running(self) -> AbstractContextManager[None]:
        return nullcontext()

    def run(
        self, _: object, arguments: tuple[tuple[Path, ...], tuple[str, ...]], limits: TaskLimits
    ) -> Outcome:
        paths, keys = arguments
        self.timed.append(paths)
        if self.bad & set(paths):
            return Outcome(MeasureError.CRASH, "its process ended")
        part = Outcome(costs=(float(len(paths)),) * len(keys))
        return Outcome(parts=(part,) * len(paths))


def test_a_candidate_that_crashes_does_not_cost_the_others_their_times() -> None:
    first, bad, last = Path("first"), Path("bad"), Path("last")
    workers = CrashingWorkers(bad)
    runner = Runner(cast("Workers", workers), TaskLimits(1.0))
    outcomes = runner.time_kernels([first, bad, last], ["key"])
    assert [outcome.error for outcome in outcomes] == [MeasureError.OK, MeasureError.CRASH, MeasureError.OK]
    assert [outcome.costs for outcome in outcomes] == [(2.0,), (), (2.0,)], "the others beside each other"
    assert workers.timed[-1] == (first, last)


def test_a_candidate_that_crashes_alone_is_timed_once() -> None:
    workers = CrashingWorkers(Path("bad"))
    runner = Runner(cast("Workers", workers), TaskLimits(1.0))
    (outcome,) = runner.time_kernels([Path("bad")], ["key"])
    assert outcome.error is MeasureError.CRASH
    assert len(workers.timed) == 1


@pytest.fixture
def testbed() -> Iterator[LocalTestbed]:
    with LocalTestbed.open(Host.detect(), workers=1) as opened:
        yield opened


@pytest.mark.slow
def test_measured_times_are_stored(testbed: LocalTestbed, tmp_path: Path) -> None:
    item = MeasureInput(Workload(program()), NATIVE, WHOLE)
    _, groups = saved(tmp_path / "native", NATIVE)
    with Database.open(tmp_path / "kept.db") as database:
        first = Measurer(testbed, database).time_kernels([item], groups)
        measurer = Measurer(testbed, database)
        again = measurer.time_kernels([item], groups)
    assert first is not None
    assert again is not None
    assert again[0].costs == first[0].costs
    assert all(isfinite(seconds) and seconds > 0 for seconds in first[0].costs)
    assert measurer.spent > 0, "it counts with the time that it took"
