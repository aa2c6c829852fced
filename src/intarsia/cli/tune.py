"""`intarsia tune`: find the fastest right toolchain for a model, and save the result."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from intarsia.cli.arguments import (
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
from intarsia.cli.console import Console
from intarsia.cli.database_place import Place, open_database
from intarsia.cli.gate_text import MAX_ERROR_MEANS
from intarsia.cli.report import Report
from intarsia.cli.table import Table
from intarsia.cli.units import NOTHING, duration_text, error_text, ratio_text, size_text
from intarsia.support.errors import IntarsiaError, StoppedError, TooSlowError, UsageError

if TYPE_CHECKING:
    from intarsia.cli.model_argument import ModelArgument
    from intarsia.driver.records import CandidateRecord
    from intarsia.driver.result import TuneResult

HEADERS = ("model", "toolchain", "median latency", "ratio to the best", "max error", "chosen")
NUMERIC = frozenset({2, 4})
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
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="Who runs what: taken up from FILE if it exists, and written to it at the end.",
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
    from intarsia.cli.interruption import stoppable
    from intarsia.cli.model_argument import ModelArgument
    from intarsia.cli.output_argument import check_artifact_place
    from intarsia.cli.plan_argument import check_plan_place
    from intarsia.cli.program import special_inputs
    from intarsia.cli.range_argument import parse_ranges
    from intarsia.cli.shape_argument import parse_shapes
    from intarsia.cli.target_argument import parse_target
    from intarsia.driver.budget import parse_budget
    from intarsia.driver.plans import refuse_choices
    from intarsia.driver.records import Progress, Stage
    from intarsia.driver.tune import tune as tune_model
    from intarsia.measure.inputs import with_input_ranges

    console: Console = context.obj
    argument = _only_a_model(ModelArgument.parse(model))
    place = f"{argument.name}{SUFFIX}" if output == DEFAULT_OUTPUT else output
    seconds, fixed = parse_budget(budget), parse_shapes(shapes)
    fixed_ranges = parse_ranges(ranges)
    candidates = [parse_target(text, threads) for text in targets] or None
    kept_plan = None if plan is None else Path(plan)
    if locked:
        refuse_choices(kept_plan, target=candidates, threads=threads, trials=trials)
    check_artifact_place(Path(place), argument.place)
    if kept_plan is not None and not locked:
        check_plan_place(kept_plan, argument.place, Path(place))
    with (
        open_database(database, create=True) as kept,
        stoppable(
            lambda: console.note("stopping after the current candidate; Ctrl-C again stops now")
        ) as stop,
        console.progress() as report,
    ):
        report(Progress(Stage.IMPORT))
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
            plan=kept_plan,
            locked=locked,
            on_progress=report,
            on_note=console.note,
            should_stop=stop,
        )
    result.save(place)
    return _report(argument.name, result, Path(place), require_latency, None if locked else plan)


def _shape_flags(result: TuneResult) -> str:
    """The flags that give inputs of symbolic shape the shape that was measured."""
    pairs = zip(result.executable.inputs, result.self_test.inputs, strict=True)
    return "".join(
        f" --shape {shlex.quote(info.name)}={','.join(map(str, array.shape))}"
        for info, array in pairs
        if info.shape is None or not all(isinstance(dim, int) and dim >= 0 for dim in info.shape)
    )


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


def _report(name: str, result: TuneResult, path: Path, required_ms: float | None, plan: str | None) -> Report:
    from intarsia.support.files import folder_size

    size = folder_size(path)
    rows = tuple(_row(name, record) for record in result.candidates)
    best = next(index for index, record in enumerate(result.candidates) if record.chosen)
    lines = [
        *(_fate(record) for record in result.candidates if record.timing is None),
        *_within_noise(result),
        *_search_lines(result),
        f"reference result: {result.reference}",
        MAX_ERROR_MEANS,
        *_repeated(result),
        *([] if plan is None else [f"wrote the plan {plan}"]),
        f"wrote {path} ({size_text(size)})",
        f"run it: intarsia run {shlex.quote(str(path))}{_shape_flags(result)}",
    ]
    document: dict[str, Any] = {
        **result.to_json(),
        "model": name,
        "file": str(path),
        "bytes": size,
        "plan": plan,
    }
    error: IntarsiaError | None = None if required_ms is None else _too_slow(name, result.chosen, required_ms)
    if result.stopped:
        error = StoppedError(
            "stopped before the end; the best so far was saved",
            help="what has been measured is kept: run the same command again to go on",
        )
    return Report(document, (Table(HEADERS, rows, NUMERIC, chosen=best), *lines), error)


def _row(name: str, record: CandidateRecord) -> tuple[str, ...]:
    return (
        name,
        _candidate_name(record),
        NOTHING if record.timing is None else duration_text(record.timing.median),
        record.status.value if record.ratio is None else ratio_text(record.ratio),
        NOTHING if record.max_error is None else error_text(record.max_error),
        "yes" if record.chosen else "",
    )


def _candidate_name(record: CandidateRecord) -> str:
    from intarsia.cli.target_argument import target_text
    from intarsia.target import Target

    return target_text(Target.parse(record.target)) if record.is_whole else record.name


def _fate(record: CandidateRecord) -> str:
    return f"{_candidate_name(record)}: {record.status.value}: {record.reason}"


def _search_lines(result: TuneResult) -> list[str]:
    """What was searched besides whole models, if anything."""
    from intarsia.cli.search_line import loss_line, search_line

    search, losses = result.explanation.search, result.explanation.losses
    if search is None:
        return []
    return [search_line(search), *([] if losses is None else [loss_line(losses)])]


def _repeated(result: TuneResult) -> list[str]:
    """That nothing was measured, and what to do about it."""
    if result.finished_at is None:
        return []
    moment = datetime.fromtimestamp(result.finished_at, UTC)
    return [
        f"the same was asked before: found again as it was measured at {moment:%Y-%m-%d %H:%M} UTC; "
        "more --budget searches on, another --database measures anew"
    ]


def _within_noise(result: TuneResult) -> list[str]:
    """Who could as well have been chosen."""
    close = [
        _candidate_name(record)
        for record in result.candidates
        if not record.chosen and record.ratio is not None and record.ratio.contains_one
    ]
    winner = _candidate_name(result.chosen)
    return [f"not told apart from {winner} by this measurement: {', '.join(close)}"] if close else []


def _too_slow(name: str, chosen: CandidateRecord, required_ms: float) -> TooSlowError | None:
    assert chosen.timing is not None
    if chosen.timing.median * 1e3 <= required_ms:
        return None
    return TooSlowError(
        f"{name} takes {duration_text(chosen.timing.median)} with {_candidate_name(chosen)}, "
        f"required at most {required_ms:g} ms"
    )
