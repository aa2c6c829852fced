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
from intarsia.driver.run_settings import RunSettings
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
            chosen, passes, plan = (), (), history.plan_of(module, on_note)
        name = options.name or given_name(model) or str(module.attrs.get("name", "model"))
        inputs = {**quantisation.inputs, **imported.inputs}
        workload = Workload(module, name, inputs, samples=sized.samples)
        result = self._run(self._settings(workload, chosen, passes, plan), request, report)
        if not self._is_locked:
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
        self, settings: RunSettings, request: RunRequest, report: Callable[[Progress], object]
    ) -> TuneResult:
        """Run the candidates of a workload on this machine or on the cluster, and return the result."""
        callbacks, host = self.callbacks, this_host()
        limits = TestbedLimits.of_budget(settings.seconds)
        with closing(_testbed(self.cluster, host, limits, settings.seed, callbacks.on_note)) as testbed:
            run = TuneRun(
                settings,
                testbed,
                limits.run_seconds,
                limits.build_seconds,
                None if self._is_locked else self.database,
                replace(callbacks, on_progress=report),
                request,
            )
            return run.tune(self.start)

    @property
    def _is_locked(self) -> bool:
        """Whether a plan is built as it is: a given one, or that of an earlier run."""
        return self.options.locked or self.options.seconds == 0

    def _settings(
        self, workload: Workload, targets: Sequence[Target], passes: Sequence[Pass], plan: Plan | None
    ) -> RunSettings:
        """Return the settings of the run, with the time for a requested search of schedules apart."""
        options, share = self.options, 0.0
        seconds = options.seconds - options.stream_seconds if options.seconds else PREDICTION_SECONDS
        if not self._is_locked:
            requested = seconds * SCHEDULE_SHARE if options.requests_schedules else None
            trials, share = options.schedule_trials, requested or 0.0
            passes = with_schedules(passes, options.schedules, requested, trials, self.cluster, targets)
        return RunSettings(
            workload=replace(workload, judge_seconds=(seconds - share) * JUDGE_SHARE),
            targets=targets,
            seconds=seconds - share,
            trials=options.trials,
            seed=options.seed,
            searches=options.partitions and not self._is_locked,
            passes=passes,
            plan=plan,
            proves=options.until_proven,
            schedule_seconds=share,
            dynamic=options.mode,
            front=options.front,
        )


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
