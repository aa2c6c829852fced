"""`intarsia tune`: find the fastest correct toolchain for a model, and save the result."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from collections.abc import Sequence

    from intarsia.cli.arguments.model import ModelArgument
    from intarsia.ir import IRModule
    from intarsia.target import Host
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
    every_host: Annotated[
        bool,
        typer.Option(
            "--every-host",
            help="With --cluster, tune for every kind of machine among the workers: an artifact for each, "
            "with the start of its fingerprint in the name.",
        ),
    ] = False,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Forbid algorithms that change sums to save operations, such as Winograd's."
        ),
    ] = False,
    tolerance: Annotated[
        str | None,
        typer.Option(
            "--tolerance",
            metavar="E",
            help="Largest allowed error of an output (RMS) as a fraction of its RMS, or the least ratio of "
            "signal to noise: 0.05 or 26dB. Above the rounding error, narrower types and less accurate "
            "algorithms are tried too.",
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
            help="Metric of --max-drop: top-1 (by labels in --calibration, else by float32), cosine, or a "
            "function of yours as FILE.py:FUNCTION.",
        ),
    ] = "top-1",
    front: Annotated[
        bool,
        typer.Option(
            "--front",
            help="List the programs of which no other is both faster and more exact. With --calibration, "
            "programs with a half to an eighth of the error of int8 are measured too.",
        ),
    ] = False,
    save_front: Annotated[
        Path | None,
        typer.Option(
            "--save-front",
            metavar="FOLDER",
            help="Save the programs of --front in a folder, with front.json and the picture front.svg.",
        ),
    ] = None,
    front_errors: Annotated[
        list[float] | None,
        typer.Option(
            "--front-error",
            metavar="E",
            min=0,
            help="With --save-front, save the fastest program with at most this error only. Repeatable.",
        ),
    ] = None,
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
    from intarsia.cli.arguments.metric import parse_metric, parse_tolerance
    from intarsia.cli.arguments.model import ModelArgument
    from intarsia.cli.arguments.output import check_artifact_place
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

    console: Console = context.obj
    argument = _only_a_model(ModelArgument.parse(model))
    out_path = f"{argument.name}{SUFFIX}" if output == DEFAULT_OUTPUT else output
    seconds, sizes = parse_budget(budget), parse_shape_words(shapes)
    fixed_ranges = parse_ranges(ranges)
    deciding = _read_passes(passes)
    limits = {"tolerance": parse_tolerance(tolerance), "metric": parse_metric(metric)}
    candidates = [parse_target(text, threads) for text in targets] or None
    plan_path = None if plan is None else Path(plan)
    if every_host:
        kept = {"plan": plan, "report": report, "save_front": save_front}
        _check_every_host(cluster, **kept, locked=locked, require_latency=require_latency)
    if locked:
        requested = schedules if schedule_trials is None else True
        choices = {"pipeline": pipeline, "passes": passes, "schedules": requested, "exact": exact or None}
        refuse_choices(plan_path, target=candidates, threads=threads, trials=trials, **choices)
    check_artifact_place(Path(out_path), argument.source)
    _check_report(report, Path(out_path), argument.source)
    _check_front(save_front, front_errors)
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
        options: dict[str, Any] = {
            "budget": seconds,
            "trials": trials,
            "targets": candidates,
            "dims": sizes.dims,
            "inputs": special_inputs(module["main"], inputs, seed, console.note),
            "name": argument.name,
            "seed": seed,
            "threads": None if candidates else threads,
            "database": opened,
            "cluster": cluster,
            "exact": exact,
            "calibration": calibration,
            "max_drop": max_drop,
            **limits,
            "front": front or save_front is not None,
            "pipeline": pipeline,
            "passes": deciding,
            "schedules": schedules,
            "schedule_trials": schedule_trials,
            "until_proven": until_proven,
            "dynamic": dynamic,
            "objective": objective,
            "concurrency": concurrency,
            "batch": batch,
            "should_stop": stop,
        }
        if every_host:
            return _tune_every_host(module, options, console, Path(out_path))
        outputs: dict[str, Any] = {"plan": plan_path, "locked": locked}
        result = tune_model(module, **options, **outputs, on_progress=on_progress, on_note=console.note)
    result.save(out_path)
    saved = None if save_front is None else result.save_front(save_front, front_errors or ())
    if report is not None:
        result.report().write(report)
    written_plan = None if locked else plan
    return tune_report(argument.name, result, Path(out_path), require_latency, written_plan, report, saved)


def _check_every_host(cluster: str | None, **options: object) -> None:
    if cluster is None:
        raise UsageError(
            "--every-host needs the workers of a cluster", help="give the scheduler as --cluster ADDRESS"
        )
    for name, value in options.items():
        if value not in {None, False}:
            flag = name.replace("_", "-")
            raise UsageError(
                f"--every-host gives an artifact for each machine, and takes no --{flag}",
                help=f"leave out --{flag}, or tune on one machine of each kind",
            )


def _check_report(report: Path | None, output: Path, model: str) -> None:
    from intarsia.cli.arguments.output import check_writable, refuse_to_replace
    from intarsia.report.packages import check_report_packages

    if report is None:
        return
    check_report_packages()
    if report.absolute() == output.absolute():
        raise UsageError(f"--report and --output are both {report}", help="give two files")
    refuse_to_replace(report, model)
    check_writable(report)


def _check_front(folder: Path | None, errors: Sequence[float] | None) -> None:
    from intarsia.cli.arguments.output import check_writable
    from intarsia.driver.precision_front import PICTURE
    from intarsia.report.packages import report_package

    if errors and folder is None:
        raise UsageError("--front-error is given, but nothing to save", help="give --save-front FOLDER")
    if folder is not None:
        report_package("matplotlib")  # a long run must not end without its picture
        check_writable(folder / PICTURE if folder.is_dir() else folder)


def _tune_every_host(module: IRModule, options: dict[str, Any], console: Console, output: Path) -> Report:
    """Tune for each kind of machine of the cluster, and save an artifact for each beside the output."""
    from intarsia.cli.reports.host_report import host_path, hosts_report
    from intarsia.driver.tune_hosts import tune_hosts

    answers = tune_hosts(module, **options, on_note=partial(_note_of_host, console))
    for answer in answers:
        if answer.error is None:
            answer.save(host_path(output, answer))
    return hosts_report(options["name"], answers, output)


def _note_of_host(console: Console, host: Host, text: str) -> None:
    console.note(f"{host.digest[:8]}: {text}")


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
