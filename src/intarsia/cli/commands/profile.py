"""`intarsia profile`: where the time of a program goes, kernel by kernel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from intarsia.cli.arguments.completion import complete_model
from intarsia.cli.arguments.options import MODEL_HELP, Inputs, Seed, Shapes, Threads, Toolchains
from intarsia.cli.arguments.trust import RequireSignature, Trust, Untrusted
from intarsia.cli.console.console import Console
from intarsia.cli.reports.report import Block, Report
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.cli.arguments.program import Program
    from intarsia.runtime.profile import Profile


def profile(
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="ARTIFACT|MODEL[@TOOLCHAIN]...", help=MODEL_HELP, autocompletion=complete_model
        ),
    ],
    *,
    by: Annotated[
        str, typer.Option("--by", metavar="NAME", help="Add rows up by node, kernel, module or operator.")
    ] = "node",
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="Number of rows to show.")] = 15,
    runs: Annotated[int, typer.Option("--runs", metavar="N", min=1, help="Number of timed runs.")] = 20,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show two programs of one model side by side, by node.")
    ] = False,
    counters: Annotated[
        bool,
        typer.Option(
            "--counters",
            help="Read hardware counters (cycles, instructions, misses) around kernels, where Linux allows.",
        ),
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE.json", help="Write a run for Perfetto or chrome://tracing."),
    ] = None,
    toolchains: Toolchains,
    inputs: Inputs,
    shapes: Shapes,
    seed: Seed = 0,
    threads: Threads = None,
    untrusted: Untrusted = False,
    require_signature: RequireSignature = None,
) -> Report:
    """Show where the time of models and artifacts goes.

    Each toolchain reports the kernels inside its engine, with the nodes of the model that each computes. The
    time end to end is measured beside it, without any profiler.
    """
    from intarsia.cli.arguments.output import check_writable
    from intarsia.cli.arguments.program_list import open_programs
    from intarsia.cli.arguments.shape import parse_shapes
    from intarsia.cli.reports.profile_report import comparison_report, profile_blocks
    from intarsia.runtime.profile_table import ProfileGrouping

    if by not in list(ProfileGrouping):
        raise UsageError(f"--by {by} is no grouping", help=f"choose one of {', '.join(ProfileGrouping)}")
    if trace is not None:
        check_writable(trace)
    console: Console = context.obj
    trust = Trust(untrusted, require_signature)
    programs = open_programs(models, parse_shapes(shapes), toolchains, threads, console.note, trust)
    _check_count(len(programs), is_compared=compare, is_traced=trace is not None)
    profiles = {
        item.name: profile_program(item, inputs, seed, console, runs, counters=counters) for item in programs
    }
    if compare:
        return comparison_report(profiles, top)
    blocks: list[Block] = [*profile_blocks(profiles, by, top)]
    if trace is not None:
        (only,) = profiles.values()
        only.write_trace(trace)
        blocks.append(f"wrote {trace}: open it in https://ui.perfetto.dev or chrome://tracing")
    records = [{"program": name, **item.to_json()} for name, item in profiles.items()]
    return Report({"programs": records, "file": None if trace is None else str(trace)}, tuple(blocks))


def profile_program(
    program: Program,
    inputs: list[str],
    seed: int,
    console: Console,
    runs: int = 20,
    *,
    counters: bool = False,
) -> Profile:
    """Return the profile of a program on inputs from files, others random."""
    arrays = program.inputs(inputs, seed, console.note)
    return program.executable.profile(
        *(arrays[info.name] for info in program.executable.inputs), repeats=runs, counters=counters
    )


def _check_count(count: int, *, is_compared: bool, is_traced: bool) -> None:
    if is_compared and count != 2:
        raise UsageError(
            f"--compare takes two programs, but {count} are given",
            help="name two, such as MODEL@native and MODEL@onnxruntime",
        )
    if is_traced and (is_compared or count != 1):
        raise UsageError("--trace writes one program", help="name one program, without --compare")
