"""`intarsia bisect`: find the first pass that changes the result of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from intarsia.cli.arguments.completion import complete_pass_text, complete_pipeline
from intarsia.cli.arguments.options import Inputs, Model, Seed, Shapes, Threads, Toolchain
from intarsia.cli.console.console import Console
from intarsia.cli.reports.pass_error import pass_error
from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.table import Table
from intarsia.support.errors import UsageError, VerificationError
from intarsia.support.units import NOTHING, error_text
from intarsia.target.reference import REFERENCE

if TYPE_CHECKING:
    from intarsia.measure.pass_bisection import PassBisection, Verdict
    from intarsia.transform import Sequential
    from intarsia.transform.bisection import BisectedPass, Bisection, RaisedPass

HEADERS = ("pass", "program", "result", "max error", "what is wrong")
DEFAULT_PIPELINE = "default_heuristic"

Pipeline = Annotated[
    str | None,
    typer.Option(
        "--pipeline",
        metavar="NAME",
        help=f"Name of a pipeline of passes. [default: {DEFAULT_PIPELINE}, unless --pass is given]",
        autocompletion=complete_pipeline,
    ),
]
Passes = Annotated[
    list[str],
    typer.Option(
        "--pass",
        metavar="TEXT",
        help="Pass to run, regardless of its level: FoldConstant, or with options "
        '"FoldConstant{max_bytes=1024}". May be repeated.',
        autocompletion=complete_pass_text,
        default_factory=list,
        show_default=False,
    ),
]
OptLevel = Annotated[
    int, typer.Option("--opt-level", metavar="N", help="Optimization level of the PassContext.")
]
Exhaustive = Annotated[
    bool,
    typer.Option("--exhaustive", help="Run the program after every pass, not only as the bisection needs."),
]


def bisect(
    context: typer.Context,
    model: Model,
    *,
    pipeline: Pipeline = None,
    passes: Passes,
    opt_level: OptLevel = 2,
    exhaustive: Exhaustive = False,
    toolchain: Toolchain = None,
    inputs: Inputs,
    shapes: Shapes,
    seed: Seed = 0,
    threads: Threads = None,
) -> Report:
    """Find the first pass that makes a model's results wrong.

    Runs the passes once, and then programs between them until the first wrong one is found.
    """
    from intarsia.cli.arguments.model import ModelArgument
    from intarsia.cli.arguments.program import main_inputs
    from intarsia.cli.arguments.random_rest import of_inputs
    from intarsia.cli.arguments.shape import parse_shapes
    from intarsia.cli.arguments.target import parse_target
    from intarsia.measure.pass_bisection import find_wrong_pass
    from intarsia.transform import PassContext

    console: Console = context.obj
    argument = ModelArgument.parse(model)
    if argument.is_artifact:
        raise UsageError("an artifact is compiled already", help="pass the model that it was tuned from")
    fixed = parse_shapes(shapes)
    sequence = _sequence(pipeline, passes)
    module = argument.import_model(fixed)
    arrays = main_inputs(module, inputs, of_inputs(module["main"], fixed), seed, console.note)
    target = parse_target(argument.target or toolchain or REFERENCE, threads)
    given = [item.info.name for item in sequence.flattened()] if passes else []
    ctx = PassContext(opt_level=opt_level, required_pass=given)
    bisected = find_wrong_pass(module, sequence, arrays, target, exhaustive=exhaustive, ctx=ctx)
    return _report(model, sequence.info.name, bisected)


def _sequence(pipeline: str | None, passes: list[str]) -> Sequential:
    from intarsia.transform import Sequential, load_pass_sequence, read_passes

    if pipeline is not None and passes:
        raise UsageError("both --pipeline and --pass are given", help="give one of them")
    if passes:
        return Sequential([item for text in passes for item in read_passes(text)], name=", ".join(passes))
    return load_pass_sequence(pipeline or DEFAULT_PIPELINE)


def _report(model: str, name: str, bisected: PassBisection) -> Report:
    bisection = bisected.bisection
    rows = [(item, _verdict(item, bisected)) for item in bisection.passes]
    raised = bisection.raised
    document = {
        "model": model,
        "passes": [_record(item, verdict) for item, verdict in rows],
        "guilty": None if bisection.guilty is None else bisection.guilty.name,
        "diff": "" if bisection.guilty is None else bisection.guilty.change.diff(),
        "raised": None if bisection.error is None else str(bisection.error),
        "raised_by": None if raised is None else _raised_record(raised),
        "runs": bisection.evaluations,
        "reference": bisected.reference,
    }
    chosen = None if bisection.guilty is None else bisection.passes.index(bisection.guilty)
    cells = [_cells(item, verdict) for item, verdict in rows]
    if raised is not None:
        cells.append((raised.name, "raised", NOTHING, NOTHING, type(raised.error).__name__))
    table = Table(HEADERS, tuple(cells), frozenset({3}), chosen)
    blocks: list[Block] = [table, f"reference result: {bisected.reference}"]
    if bisection.guilty is not None:
        if bisection.error is not None:
            blocks.append(f"a later pass has failed: {bisection.error if raised is None else raised}")
        blocks += ["", f"what {bisection.guilty.name} changed:", bisection.guilty.change.diff()]
        problem = f"{bisection.guilty.name} is the first pass of {name} after which the program is wrong"
        return Report(document, tuple(blocks), VerificationError(problem, help="see what it changed above"))
    if bisection.error is not None:
        return Report(document, tuple(blocks), pass_error(bisection.error, raised))
    return Report(document, (*blocks, _nothing_wrong(bisection)))


def _raised_record(raised: RaisedPass) -> dict[str, Any]:
    owner = raised.owner
    return {
        "name": raised.name,
        "type": type(raised.error).__name__,
        "text": getattr(raised.error, "problem", str(raised.error)),
        "module": None if owner is None else owner.module,
        "package": (owner.package or None) if owner is not None else None,
    }


def _nothing_wrong(bisection: Bisection) -> str:
    changed = [item for item in bisection.passes if item.change.is_changed]
    if not changed:
        return "no pass changed the program"
    is_every = all(item.is_right for item in changed)
    where = "after every pass" if is_every else "after the last pass (--exhaustive looks at all)"
    return f"right {where}; programs run: {bisection.evaluations}"


def _verdict(item: BisectedPass, bisected: PassBisection) -> Verdict | None:
    return None if item.is_right is None else bisected.verdicts.get(item.change.after)


def _cells(item: BisectedPass, verdict: Verdict | None) -> tuple[str, ...]:
    program = "changed" if item.change.is_changed else "unchanged"
    if verdict is None:
        return (item.name, program, NOTHING, NOTHING, "")
    error = NOTHING if verdict.max_error is None else error_text(verdict.max_error)
    return (item.name, program, "right" if verdict.is_right else "wrong", error, verdict.message)


def _record(item: BisectedPass, verdict: Verdict | None) -> dict[str, Any]:
    return {
        "name": item.name,
        "changed": item.change.is_changed,
        "right": item.is_right,
        "max_error": None if verdict is None else verdict.max_error,
        "message": "" if verdict is None else verdict.message,
    }
