"""`intarsia bench`: latency of one call, and where its time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from intarsia.cli.arguments.completion import complete_model
from intarsia.cli.arguments.options import MODEL_HELP, Budget, Inputs, Seed, Shapes, Threads, Toolchains
from intarsia.cli.arguments.trust import RequireSignature, Trust, Untrusted
from intarsia.cli.console.console import Console
from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.table import Table
from intarsia.support.units import duration_text, interval_text

if TYPE_CHECKING:
    from intarsia.cli.arguments.program import Program
    from intarsia.measure.timing.timing import Timing

HEADERS = ("program", "toolchain", "median", "95 % interval", "spread", "calls")
NUMERIC = frozenset({2, 4, 5})


def bench(
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="ARTIFACT|MODEL[@TOOLCHAIN]...", help=MODEL_HELP, autocompletion=complete_model
        ),
    ],
    *,
    toolchains: Toolchains,
    inputs: Inputs,
    shapes: Shapes,
    seed: Seed = 0,
    threads: Threads = None,
    budget: Budget = "10s",
    profile: Annotated[bool, typer.Option("--profile", help="Show the time of each kernel.")] = False,
    untrusted: Untrusted = False,
    require_signature: RequireSignature = None,
) -> Report:
    """Measure the latency of models and artifacts.

    Several of them are measured interleaved, so that clock drift affects all equally.
    """
    from intarsia.cli.arguments.program_list import open_programs
    from intarsia.cli.arguments.shape import parse_shapes
    from intarsia.cli.commands.profile import profile_program
    from intarsia.cli.reports.profile_report import profile_blocks
    from intarsia.driver.budget import parse_budget
    from intarsia.measure.timing.interleaved import time_interleaved
    from intarsia.measure.timing.timing import TimingPolicy

    console: Console = context.obj
    seconds = parse_budget(budget)
    trust = Trust(untrusted, require_signature)
    programs = open_programs(models, parse_shapes(shapes), toolchains, threads, console.note, trust)
    arrays = [program.inputs(inputs, seed, console.note) for program in programs]
    calls = {p.name: p.bound_call(a) for p, a in zip(programs, arrays, strict=True)}
    policy = TimingPolicy(max_seconds=seconds / len(calls), seed=seed)
    with console.measuring() as on_round:
        timings = time_interleaved(calls, policy, on_round=on_round).timings
    profiled = programs if profile else []
    profiles = {item.name: profile_program(item, inputs, seed, console) for item in profiled}
    rows = tuple(_row(program, timings[program.name]) for program in programs)
    blocks: list[Block] = [Table(HEADERS, rows, NUMERIC)]
    blocks += profile_blocks(profiles)
    records = [_record(program, timings[program.name]) for program in programs]
    for record, kernel_profile in zip(records, profiles.values(), strict=False):
        record["profile"] = kernel_profile.to_json()
    return Report({"programs": records, "seed": seed}, tuple(blocks))


def _row(program: Program, timing: Timing) -> tuple[str, ...]:
    return (
        program.name,
        program.toolchains,
        duration_text(timing.median),
        interval_text(timing.low, timing.high),
        f"{timing.spread:.1%}",
        str(timing.calls),
    )


def _record(program: Program, timing: Timing) -> dict[str, Any]:
    return {
        "program": program.name,
        "toolchain": program.toolchains,
        "latency_seconds": timing.median,
        "latency_interval": [timing.low, timing.high],
        "latency_spread": timing.spread,
        "calls": timing.calls,
    }
