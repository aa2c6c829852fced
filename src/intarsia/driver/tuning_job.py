"""A tuning job: from a model and options to a run, and from its result to the history and the plan file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final

from intarsia.collage.gather_specs import gather_partition_specs
from intarsia.collage.placement.plan import Plan
from intarsia.driver.baselines import baseline_targets, engines
from intarsia.driver.import_model import TuneModel, given_name, import_model
from intarsia.driver.plans import read_plan
from intarsia.driver.progress import Progress, TuneStage
from intarsia.driver.quantisation import Quantisation, prepare_quantisation
from intarsia.driver.result import TuneResult
from intarsia.driver.run_request import run_request
from intarsia.driver.shape_samples import SizedProgram, shapes_of, sized_program
from intarsia.driver.stage_clock import StageClock
from intarsia.driver.tune_options import RunCallbacks, TuneOptions
from intarsia.driver.tune_run import TuneRun
from intarsia.driver.tune_streams import tune_streams
from intarsia.driver.tuning_history import PREDICTION_SECONDS, TuningHistory
from intarsia.driver.tuning_pipelines import deciding_passes, with_schedules
from intarsia.frontend.onnx import import_notes
from intarsia.ir import IRModule
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Workload
from intarsia.measure.testbed import LocalTestbed, Testbed, TestbedLimits
from intarsia.op.operator_sources import check_workers_find
from intarsia.report.run_records import RunRequest
from intarsia.target import Host, Target
from intarsia.toolchain.this_host import this_host
from intarsia.transform import Pass

JUDGE_SHARE: Final = 0.1
"""Share of the budget that onnx.reference may take to compute the reference of one input set, by estimate."""

SCHEDULE_SHARE: Final = 0.5
"""Share of the budget for tuning schedules, if requested."""


@dataclass(frozen=True, slots=True)
class _Decisions:
    """What a run may choose from.

    Attributes:
        targets: Targets to compare; none for a run that builds a plan.
        passes: Passes that decide.
        plan: Plan of an earlier run, or None.
        seconds: Seconds of the run without those of a requested search of schedules.
        schedule_seconds: Seconds of that search.
        is_locked: Whether the plan is built as it is.
    """

    targets: Sequence[Target]
    passes: Sequence[Pass]
    plan: Plan | None
    seconds: float
    schedule_seconds: float = 0.0
    is_locked: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TuningJob:
    """A call of `intarsia.tune` with everything but the model.

    Attributes:
        options: Options of the run.
        callbacks: Functions that the run calls.
        database: Database of measurements, or None.
        cluster: Address of a Dask scheduler, or None.
        start: Start of the run, by `time.perf_counter`: what is imported before counts against the budget.
    """

    options: TuneOptions
    callbacks: RunCallbacks
    database: Database | None
    cluster: str | None
    start: float

    def tune(self, model: Any, example_inputs: Any = None, dynamic_shapes: Any = None) -> TuneResult:
        """Tune a model; arguments and errors are those of `intarsia.tune`."""
        options, accuracy, on_note = self.options, self.options.accuracy, self.callbacks.on_note
        request = run_request(options)
        chosen = self._targets()
        passes = self._passes()
        # It fails for an unknown partition rule before anything is measured.
        gather_partition_specs(engines(chosen))
        report = StageClock(self.callbacks.on_progress)
        report(Progress(TuneStage.IMPORT))
        imported, sized = self._import(model, example_inputs, dynamic_shapes)
        module, host = sized.module, this_host()
        quantisation = self._quantisation(module, chosen)
        passes = (*quantisation.passes, *passes)
        request = replace(request, notes=(*request.notes, *quantisation.notes))
        plan = read_plan(options.plan, module, host, on_note, must_exist=options.locked)
        history = TuningHistory(None if options.locked else self.database, host, chosen, accuracy)
        if options.seconds == 0:
            decisions = _Decisions((), (), history.plan_of(module, on_note), PREDICTION_SECONDS, 0.0, True)
        else:
            decisions = self._decisions(chosen, passes, plan)
        workload = Workload(
            module,
            options.name or given_name(model) or str(module.attrs.get("name", "model")),
            {**quantisation.inputs, **imported.inputs},
            judge_seconds=decisions.seconds * JUDGE_SHARE,
            samples=sized.samples,
        )
        result = self._run(workload, decisions, request, report)
        if not decisions.is_locked:
            # A plan in integers is for runs with calibration inputs: nothing else may find it.
            if not result.stopped and options.calibration is None:
                history.keep(module, result.plan)
            if options.plan is not None:
                result.plan.write(options.plan)
        if options.stream_seconds and not result.stopped:
            report(Progress(TuneStage.RACE))
            should_stop = self.callbacks.should_stop
            database = None if options.locked else self.database
            seconds = options.stream_seconds
            result = tune_streams(result, workload, options.load, seconds, should_stop, database)
        return result

    def _targets(self) -> tuple[Target, ...]:
        """Return the targets to compare; none for a run that builds a plan."""
        options = self.options
        if options.locked:
            return ()
        return options.accuracy.targets(baseline_targets(options.targets, options.threads))

    def _passes(self) -> tuple[Pass, ...]:
        """Return the passes that decide, as the accuracy allows them; none for a run that builds a plan."""
        options = self.options
        passes = () if options.locked else deciding_passes(options.pipeline, options.passes)
        return options.accuracy.passes(passes, are_given=options.locked or options.passes is not None)

    def _import(self, model: Any, example_inputs: Any, dynamic_shapes: Any) -> tuple[TuneModel, SizedProgram]:
        """Import a model, and fix the sizes that its shapes leave open; notes say what was assumed."""
        options, on_note = self.options, self.callbacks.on_note
        shapes, inputs = options.shapes or None, options.inputs or None
        imported = import_model(model, shapes, inputs, example_inputs, dynamic_shapes)
        module = options.accuracy.program(imported.module)
        check_workers_find(module)
        for note in import_notes(module):
            on_note(note)
        fixing, examples = shapes_of(options.inputs), shapes_of(imported.inputs)
        return imported, sized_program(module, options.dims, fixing, on_note, examples)

    def _quantisation(self, module: IRModule, targets: Sequence[Target]) -> Quantisation:
        """Return what quantisation adds to the run, if it is requested."""
        options = self.options
        if options.calibration is None or not options.quantises:
            return Quantisation()
        return prepare_quantisation(
            module,
            options.calibration,
            options.error_budget,
            options.seed,
            self.callbacks.on_note,
            targets,
            front=options.front,
        )

    def _run(
        self,
        workload: Workload,
        decisions: _Decisions,
        request: RunRequest,
        report: Callable[[Progress], object],
    ) -> TuneResult:
        """Run the candidates of a workload on this machine or on the cluster, and return the result."""
        options, callbacks, host = self.options, self.callbacks, this_host()
        limits = TestbedLimits.of_budget(decisions.seconds)
        with closing(_testbed(self.cluster, host, limits, options.seed, callbacks.on_note)) as testbed:
            run = TuneRun(
                workload=workload,
                testbed=testbed,
                patience=limits.run_seconds,
                build_patience=limits.build_seconds,
                database=None if decisions.is_locked else self.database,
                targets=decisions.targets,
                seconds=decisions.seconds,
                trials=options.trials,
                seed=options.seed,
                searches=options.partitions and not decisions.is_locked,
                passes=decisions.passes,
                plan=decisions.plan,
                report=report,
                on_note=callbacks.on_note,
                should_stop=callbacks.should_stop,
                proves=options.until_proven,
                schedule_seconds=decisions.schedule_seconds,
                request=request,
                dynamic=options.mode,
            )
            return run.tune(self.start)

    def _decisions(self, targets: Sequence[Target], passes: Sequence[Pass], plan: Plan | None) -> _Decisions:
        """Return what the run decides, with the time for a requested search of schedules apart."""
        options, seconds = self.options, self.options.seconds - self.options.stream_seconds
        if options.locked:
            return _Decisions(targets, passes, plan, seconds, is_locked=True)
        share = seconds * SCHEDULE_SHARE if options.requests_schedules else None
        passes = with_schedules(
            passes, options.schedules, share, options.schedule_trials, self.cluster, targets
        )
        return _Decisions(targets, passes, plan, seconds - (share or 0.0), share or 0.0)


def _testbed(
    cluster: str | None,
    host: Host,
    limits: TestbedLimits,
    seed: int,
    on_note: Callable[[str], None],
) -> Testbed:
    if cluster is None:
        return LocalTestbed.open(host, limits=limits, seed=seed, on_wait=on_note)
    from intarsia.measure.testbed.dask_cluster import connect

    return connect(cluster, host, limits=limits, seed=seed, on_note=on_note)
