"""Tuning that is interrupted where one likes: what is measured is planned, all that decides is real."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
from tests.faulty_toolchains import faulty_toolchains

import intarsia as ia
from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.database import Database
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.racing import Race
from intarsia.measure.runner import Raced
from intarsia.measure.testbed import Measured, Testbed
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.op import call
from intarsia.runtime.executable import Executable
from intarsia.support.digest import digest_text
from intarsia.support.errors import StoppedError
from intarsia.target import Host
from intarsia.toolchain.this_host import this_host
from intarsia.tune.tuning_context import TuningContext

TARGETS = ("cpu -toolchain=right", "cpu -toolchain=reference")
SECONDS = 0.5
"""What building and running a candidate takes."""
BUDGET = 60.0

F = TypeVar("F", bound=Callable[..., Any])


class Interrupted(BaseException):
    """The end of a process; nobody catches it on the way."""


@dataclass
class Moments:
    """What happens, in order.

    Attributes:
        end_at: Number of the moment at which the process ends.
        stop_at: Number of the moment from which on the stop flag returns true.
        seen: The kinds of the moments so far.
    """

    end_at: int | None = None
    stop_at: int | None = None
    seen: list[str] = field(default_factory=list)

    def note(self, kind: str) -> None:
        """A moment has come."""
        self.seen.append(kind)
        if self.end_at == len(self.seen):
            raise Interrupted(kind)

    def should_stop(self) -> bool:
        """Whether there is a wish to stop."""
        self.note("asked to stop")
        return self.stop_at is not None and self.stop_at <= len(self.seen)

    def around(self, function: F, kind: str) -> F:
        """The function, with a moment before and one after it."""

        def noted(*args: Any, **named: Any) -> Any:
            self.note(f"before {kind}")
            found = function(*args, **named)
            self.note(f"after {kind}")
            return found

        return noted  # type: ignore[return-value]  # it is called the same way


@dataclass
class PlannedTestbed:
    """Nothing is built or run by it: what a candidate takes follows from its digest, one in eight fails."""

    folder: Path
    moments: Moments
    host: Host = field(default_factory=this_host)
    width: int = 16
    lanes: int = 1
    on_wait: None = None

    def prepare(self, workload: Workload) -> WorkloadFolder:
        self.moments.note("prepare")
        return WorkloadFolder.write(workload, self.folder)

    def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
        for item in inputs:
            self.moments.note("a candidate is built")
            outcome = planned(item)
            self.moments.note("a candidate is measured")
            yield Measured(item, outcome, SECONDS)

    def race(self, racers: Mapping[str, MeasureInput], limits: RaceLimits) -> Raced:
        race, turns = Race(tuple(racers), limits.policy), 0
        costs = {name: planned(item).costs[0] for name, item in racers.items()}
        while (name := race.next_candidate()) is not None:
            turns += 1
            if turns % 50 == 0:
                self.moments.note("racing")
            race.record(name, costs[name] * (1 + 0.002 * (turns * 7 % 5)))
        return Raced(race.result(), {})

    def forget(self, workload: Workload) -> None:
        self.moments.note("forget")

    def artifact(self, measured: MeasureInput) -> Path | None:
        return None

    def close(self) -> None:
        pass


def planned(item: MeasureInput) -> Outcome:
    """What comes of a candidate; toolchains alone work, and what is decided gains."""
    candidate = item.candidate
    number = int(digest_text((item.workload.digest, str(item.target), candidate.digest))[:6], 16)
    if candidate.kind != WHOLE.kind and number % 8 == 0:
        return Outcome(MeasureError.CRASH, "planned")
    gain = 0.7 if candidate.kind == "tuned" else 1.0
    return Outcome(costs=(1e-3 * gain * (1 + number % 1000 / 2000),) * 6, max_error=0.0)


def planned_measurer(testbed: Testbed, database: Database | None, **options: Any) -> Measurer:
    """Return a measurer for which no time passes but what the testbed plans, however busy this machine is."""
    return Measurer(testbed, database, **{**options, "clock": lambda: 0.0, "earlier": 0.0})


def layered(layers: int = 3) -> IRModule:
    """Equal layers of parallel convolutions, and two products of one value."""
    value: Expr = (x := Var("x", checked_type=TensorType((1, 4, 6, 6), DType.FLOAT32)))
    random = np.random.default_rng(1)

    def constant(*shape: int) -> Constant:
        return Constant(random.uniform(-0.5, 0.5, shape).astype(np.float32))

    for _ in range(layers):
        one = call("Conv", value, constant(4, 4, 1, 1))
        other = call("Conv", value, constant(4, 4, 3, 3), pads=(1, 1, 1, 1))
        value = call("Relu", call("Add", call("Mul", one, constant(1, 4, 1, 1)), other))
    flat = call("Flatten", value)
    both = call("Add", call("MatMul", flat, constant(144, 8)), call("MatMul", flat, constant(144, 8)))
    return IRModule.from_expr(Function((x,), both))


@contextmanager
def interruptible(folder: Path, moments: Moments) -> Iterator[None]:
    """Moments come wherever something is measured, kept, told, or tuned."""
    testbed = PlannedTestbed(folder, moments)
    with (
        patch("intarsia.driver.tuning_job._testbed", lambda *_: testbed),
        patch("intarsia.driver.tune_run.Measurer", planned_measurer),
        patch.object(Database, "commit", moments.around(Database.commit, "a record is kept")),
        patch.object(Database, "keep_run", moments.around(Database.keep_run, "the run is kept")),
        patch.object(
            TuningContext, "for_candidates", moments.around(TuningContext.for_candidates, "a pass begins")
        ),
        patch.object(Measurer, "measure", moments.around(Measurer.measure, "candidates are measured")),
        patch.object(Executable, "profile", moments.around(Executable.profile, "kernels are timed")),
        faulty_toolchains(),
    ):
        yield


def tuned(folder: Path, moments: Moments, **options: Any) -> ia.TuneResult | None:
    """What a run comes to, with what runs before it have measured; None if it ended before."""
    with interruptible(folder, moments), Database.open(folder / "measurements.db") as database:
        try:
            return ia.tune(
                layered(),
                budget=BUDGET,
                targets=TARGETS,
                database=database,
                should_stop=moments.should_stop,
                on_progress=lambda _: moments.note("progress"),
                **options,
            )
        except (Interrupted, StoppedError):
            return None


def told(result: ia.TuneResult) -> dict[str, object]:
    """What has to be the same: the plan, the decisions, what was tried, and what every candidate took."""
    found = result.explanation
    return {
        "chosen": result.chosen.name,
        "plan": result.plan.to_json(),
        "decisions": found.decisions,
        "tree": [line for record in found.tuning for line in record.lines()],
        "shares": [note for note in found.notes if "slices" in note],
        "candidates": [
            (each.name, each.status, None if each.timing is None else each.timing.samples)
            for each in result.candidates
        ],
    }
