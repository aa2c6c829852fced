"""`intarsia tune`: find the fastest right toolchain for a model, and save the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from intarsia.cli.arguments.database_path import Place, open_database
from intarsia.cli.arguments.options import (
    Budget,
    Cluster,
    Inputs,
    Model,
    Ranges,
    Seed,
    Shapes,
    Targets,
    Threads,
    Trials,
)
from intarsia.cli.console.console import Console
from intarsia.cli.reports.report import Report
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.cli.arguments.model import ModelArgument

SUFFIX = ".intarsia"
DEFAULT_OUTPUT = "MODEL.intarsia"


def tune(
    context: typer.Context,
    model: Model,
    *,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="OUT", help="The artifact; a folder if it ends with /."),
    ] = DEFAULT_OUTPUT,
    budget: Budget = "60s",
    targets: Targets,
    shapes: Shapes,
    inputs: Inputs,
    ranges: Ranges,
    seed: Seed = 0,
    threads: Threads = None,
    trials: Trials = None,
    database: Place = None,
    cluster: Cluster = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="No algorithms that save operations by other sums."),
    ] = False,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            metavar="E",
            help="The largest error of an output allowed, relative to its largest value. If it is larger "
            "than rounding, narrower types and less accurate algorithms take part.",
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="Who runs what: taken up from FILE if it exists, and written to it at the end.",
        ),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option(
            "--pipeline",
            metavar="NAME",
            help="The passes that decide on the program by measuring: default_tuning, experiment_tuning.",
        ),
    ] = None,
    passes: Annotated[
        str | None,
        typer.Option(
            "--passes",
            metavar="A,B",
            help="Such passes by name (intarsia passes lists them), in place of a pipeline; none for none.",
        ),
    ] = None,
    schedules: Annotated[
        bool,
        typer.Option(
            "--schedules", help="Search schedules of native kernels first, with half of the budget."
        ),
    ] = False,
    schedule_trials: Annotated[
        int | None,
        typer.Option(
            "--schedule-trials", metavar="N", min=1, help="Measure at most so many schedules in all."
        ),
    ] = None,
    locked: Annotated[
        bool,
        typer.Option("--locked", help="Build and verify the plan as it is: no search, no comparison."),
    ] = False,
    require_latency: Annotated[
        float | None,
        typer.Option(
            "--require-latency", metavar="MS", min=0, help="Exit with 5 if the best is slower than this."
        ),
    ] = None,
) -> Report:
    """Find and save the fastest toolchain for a model, or mix of them.

    Every toolchain runs the whole model in a process of its own, and parts of it. Those whose result is right
    are timed in turns, and the fastest is saved as an artifact, which intarsia run takes. What has been
    measured is kept: the same command again goes on where it was, or tells what it has found. Ctrl-C ends it
    after the current candidate, a second one now.
    """
    from intarsia.cli.arguments.model import ModelArgument
    from intarsia.cli.arguments.output import check_artifact_place
    from intarsia.cli.arguments.plan import check_plan_place
    from intarsia.cli.arguments.program import special_inputs
    from intarsia.cli.arguments.range import parse_ranges
    from intarsia.cli.arguments.shape import parse_shapes
    from intarsia.cli.arguments.target import parse_target
    from intarsia.cli.console.interruption import stoppable
    from intarsia.cli.reports.tune_report import tune_report
    from intarsia.driver.budget import parse_budget
    from intarsia.driver.plans import refuse_choices
    from intarsia.driver.records import Progress, TuneStage
    from intarsia.driver.tune import tune as tune_model
    from intarsia.measure.inputs import with_input_ranges

    console: Console = context.obj
    argument = _only_a_model(ModelArgument.parse(model))
    place = f"{argument.name}{SUFFIX}" if output == DEFAULT_OUTPUT else output
    seconds, fixed = parse_budget(budget), parse_shapes(shapes)
    fixed_ranges = parse_ranges(ranges)
    candidates = [parse_target(text, threads) for text in targets] or None
    plan_path = None if plan is None else Path(plan)
    if locked:
        asked = schedules or schedule_trials is not None or None
        choices = {"pipeline": pipeline, "passes": passes, "schedules": asked, "exact": exact or None}
        refuse_choices(plan_path, target=candidates, threads=threads, trials=trials, **choices)
    check_artifact_place(Path(place), argument.place)
    if plan_path is not None and not locked:
        check_plan_place(plan_path, argument.place, Path(place))
    with (
        open_database(database, create=True, on_wait=console.note) as kept,
        stoppable(
            lambda: console.note("stopping after the current candidate; Ctrl-C again stops now")
        ) as stop,
        console.progress() as report,
    ):
        report(Progress(TuneStage.IMPORT))
        module = with_input_ranges(argument.import_model(fixed), fixed_ranges)
        result = tune_model(
            module,
            budget=seconds,
            trials=trials,
            targets=candidates,
            inputs=special_inputs(module["main"], inputs, seed, console.note),
            seed=seed,
            threads=None if candidates else threads,
            database=kept,
            cluster=cluster,
            exact=exact,
            tolerance=tolerance,
            pipeline=pipeline,
            passes=_pass_names(passes),
            schedules=schedules,
            schedule_trials=schedule_trials,
            plan=plan_path,
            locked=locked,
            on_progress=report,
            on_note=console.note,
            should_stop=stop,
        )
    result.save(place)
    return tune_report(argument.name, result, Path(place), require_latency, None if locked else plan)


def _pass_names(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [name.strip() for name in text.split(",") if name.strip() and text.strip() != "none"]


def _only_a_model(argument: ModelArgument) -> ModelArgument:
    if argument.target:
        raise UsageError(
            f"tune takes a model without @{argument.target}", help=f'write --target "{argument.target}"'
        )
    if argument.is_artifact:
        raise UsageError(
            f"{argument.place} is an artifact or a folder, expected a model",
            help="tune takes an .onnx file or zoo:NAME",
        )
    return argument
