"""`intarsia tune`: find the fastest correct toolchain for a model, and save the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from intarsia.cli.arguments.completion import complete_pass_text, complete_pipeline
from intarsia.cli.arguments.database_path import OptionalPlace, open_optional_database
from intarsia.cli.arguments.options import (
    Budget,
    Cluster,
    DisabledPasses,
    Inputs,
    Model,
    PassConfig,
    Ranges,
    Seed,
    ShapesAndSizes,
    Targets,
    Threads,
    Trials,
)
from intarsia.cli.console.console import Console
from intarsia.cli.reports.report import Report
from intarsia.driver.dynamic_mode import DynamicMode
from intarsia.driver.stream_search.objective import Objective
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.cli.arguments.model import ModelArgument
    from intarsia.transform import Pass

SUFFIX = ".intarsia"
DEFAULT_OUTPUT = "MODEL.intarsia"


def tune(
    context: typer.Context,
    model: Model,
    *,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="OUT", help="Output artifact; a folder if it ends with /."),
    ] = DEFAULT_OUTPUT,
    budget: Budget = "60s",
    targets: Targets,
    shapes: ShapesAndSizes,
    inputs: Inputs,
    ranges: Ranges,
    seed: Seed = 0,
    threads: Threads = None,
    trials: Trials = None,
    database: OptionalPlace = None,
    cluster: Cluster = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Forbid algorithms that change sums to save operations, such as Winograd's."
        ),
    ] = False,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            metavar="E",
            help="Largest allowed error of an output, relative to its largest value. Above the rounding "
            "error, narrower types and less accurate algorithms are tried too.",
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(
            "--calibration",
            metavar="PATH",
            help="FILE.npz or a folder with inputs to quantise by, or random: 8-bit integers are tried too, "
            "within --tolerance or --max-drop.",
        ),
    ] = None,
    max_drop: Annotated[
        float | None,
        typer.Option(
            "--max-drop",
            metavar="D",
            help="Largest allowed drop of the metric on calibration inputs that are held back.",
        ),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Metric of --max-drop: top-1 (by labels in --calibration, else by float32) or cosine.",
        ),
    ] = "top-1",
    front: Annotated[
        bool,
        typer.Option(
            "--front",
            help="With --calibration, also measure programs with half and a quarter of the error of int8: "
            "the table then lists latency against error.",
        ),
    ] = False,
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="Plan file: read as a candidate if it exists, and written at the end.",
        ),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option(
            "--pipeline",
            metavar="NAME",
            help="Pipeline of tuning passes: default_tuning or experiment_tuning.",
            autocompletion=complete_pipeline,
        ),
    ] = None,
    passes: Annotated[
        str | None,
        typer.Option(
            "--passes",
            metavar="TEXT",
            help="Tuning passes in place of a pipeline, or none: "
            '"TuneRewrite, TunePlacement{eval_passes=[TuneLayout, TuneSchedule]}". '
            "intarsia passes lists passes, intarsia passes NAME options.",
            autocompletion=complete_pass_text,
        ),
    ] = None,
    pass_config: PassConfig,
    disable_pass: DisabledPasses,
    schedules: Annotated[
        bool | None,
        typer.Option(
            "--schedules/--no-schedules",
            help="Search schedules of all native kernels with half of the budget, or none; "
            "by default of kernels that can gain.",
        ),
    ] = None,
    schedule_trials: Annotated[
        int | None,
        typer.Option("--schedule-trials", metavar="N", min=1, help="Maximum number of measured schedules."),
    ] = None,
    until_proven: Annotated[
        bool,
        typer.Option(
            "--until-proven",
            help="Search until nothing is left to try or the budget ends, however little is expected of it.",
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="Write a report of the run: one page of HTML."),
    ] = None,
    dynamic: Annotated[
        DynamicMode,
        typer.Option(
            "--dynamic",
            help="Variants for sizes that --shape names with shares (eager), or none.",
        ),
    ] = DynamicMode.EAGER,
    locked: Annotated[
        bool,
        typer.Option("--locked", help="Build and verify the plan only, without search and comparison."),
    ] = False,
    objective: Annotated[
        Objective,
        typer.Option(
            "--objective",
            help="Latency of one call, or throughput or p99 of many clients: streams, threads and batch of a "
            "pool are then measured too, and saved.",
        ),
    ] = Objective.LATENCY,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", metavar="N", help="Requests under way; by default 4 for each core."),
    ] = None,
    batch: Annotated[
        str,
        typer.Option("--batch", metavar="RANGE", help="Items of requests that are run as one: 8 or 1..16."),
    ] = "1",
    require_latency: Annotated[
        float | None,
        typer.Option(
            "--require-latency",
            metavar="MS",
            min=0,
            help="Exit with code 5 if the best latency is above this.",
        ),
    ] = None,
) -> Report:
    """Find and save the fastest engine for a model, or mix of engines.

    Each toolchain is measured on the whole model and on its parts, in separate processes. Correct candidates
    are timed interleaved, and the fastest one is saved as an artifact for intarsia run. Measurements are
    stored: the same command again continues, or repeats the result. The budget is a limit: the search ends
    earlier if little more is expected, and says what it left out. Ctrl-C stops
    after the current candidate, a second Ctrl-C immediately.
    """
    from intarsia.cli.arguments.model import ModelArgument
    from intarsia.cli.arguments.output import check_artifact_place, check_writable, refuse_to_replace
    from intarsia.cli.arguments.pass_settings import parse_pass_context
    from intarsia.cli.arguments.plan import check_plan_place
    from intarsia.cli.arguments.program import special_inputs
    from intarsia.cli.arguments.range import parse_ranges
    from intarsia.cli.arguments.shape import parse_shape_words
    from intarsia.cli.arguments.target import parse_target
    from intarsia.cli.console.interruption import stoppable
    from intarsia.cli.reports.tune_report import tune_report
    from intarsia.driver.budget import parse_budget
    from intarsia.driver.plans import refuse_choices
    from intarsia.driver.progress import Progress, TuneStage
    from intarsia.driver.tune import tune as tune_model
    from intarsia.measure.inputs import with_input_ranges
    from intarsia.report.packages import check_report_packages

    console: Console = context.obj
    argument = _only_a_model(ModelArgument.parse(model))
    out_path = f"{argument.name}{SUFFIX}" if output == DEFAULT_OUTPUT else output
    seconds, sizes = parse_budget(budget), parse_shape_words(shapes)
    fixed_ranges = parse_ranges(ranges)
    deciding = _read_passes(passes)
    candidates = [parse_target(text, threads) for text in targets] or None
    plan_path = None if plan is None else Path(plan)
    if locked:
        requested = schedules if schedule_trials is None else True
        choices = {"pipeline": pipeline, "passes": passes, "schedules": requested, "exact": exact or None}
        refuse_choices(plan_path, target=candidates, threads=threads, trials=trials, **choices)
    check_artifact_place(Path(out_path), argument.source)
    if report is not None:
        check_report_packages()
        if report.absolute() == Path(out_path).absolute():
            raise UsageError(f"--report and --output are both {report}", help="give two files")
        refuse_to_replace(report, argument.source)
        check_writable(report)
    if plan_path is not None and not locked:
        check_plan_place(plan_path, argument.source, Path(out_path))
    with (
        parse_pass_context(pass_config, disable_pass),
        open_optional_database(database, console.note) as opened,
        stoppable(
            lambda: console.note("stopping after the current candidate; Ctrl-C again stops now")
        ) as stop,
        console.progress() as on_progress,
    ):
        on_progress(Progress(TuneStage.IMPORT))
        module = with_input_ranges(argument.import_model(sizes.shapes), fixed_ranges)
        result = tune_model(
            module,
            budget=seconds,
            trials=trials,
            targets=candidates,
            dims=sizes.dims,
            inputs=special_inputs(module["main"], inputs, seed, console.note),
            name=argument.name,
            seed=seed,
            threads=None if candidates else threads,
            database=opened,
            cluster=cluster,
            exact=exact,
            tolerance=tolerance,
            calibration=calibration,
            max_drop=max_drop,
            metric=metric,
            front=front,
            pipeline=pipeline,
            passes=deciding,
            schedules=schedules,
            schedule_trials=schedule_trials,
            plan=plan_path,
            until_proven=until_proven,
            dynamic=dynamic,
            locked=locked,
            objective=objective,
            concurrency=concurrency,
            batch=batch,
            on_progress=on_progress,
            on_note=console.note,
            should_stop=stop,
        )
    result.save(out_path)
    if report is not None:
        result.report().write(report)
    written_plan = None if locked else plan
    return tune_report(argument.name, result, Path(out_path), require_latency, written_plan, report)


def _read_passes(text: str | None) -> tuple[Pass, ...] | None:
    from intarsia.transform import read_passes

    if text is None:
        return None
    return () if text.strip() == "none" else read_passes(text)


def _only_a_model(argument: ModelArgument) -> ModelArgument:
    if argument.target:
        raise UsageError(
            f"tune takes a model without @{argument.target}", help=f'write --target "{argument.target}"'
        )
    if argument.is_artifact:
        raise UsageError(
            f"{argument.source} is an artifact or a folder, expected a model",
            help="tune takes an .onnx file or zoo:NAME",
        )
    return argument
