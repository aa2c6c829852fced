"""`intarsia run`: run a model once, and show its outputs."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from intarsia.cli.arguments.options import Inputs, ModelOrArtifact, Seed, Shapes, Threads, Toolchain
from intarsia.cli.arguments.trust import RequireSignature, Trust, Untrusted
from intarsia.cli.console.console import Console
from intarsia.cli.reports.array_summary import HEADERS, NUMERIC, ArraySummary
from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.table import Table
from intarsia.runtime.kernel import Value
from intarsia.support.errors import OutputError
from intarsia.support.units import size_text


def run(
    context: typer.Context,
    model: ModelOrArtifact,
    *,
    inputs: Inputs,
    shapes: Shapes,
    seed: Seed = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.npz", help="Save the outputs by name.")
    ] = None,
    toolchain: Toolchain = None,
    threads: Threads = None,
    untrusted: Untrusted = False,
    require_signature: RequireSignature = None,
) -> Report:
    """Run a model or an artifact once.

    Prints a summary of each output, or saves the outputs.
    """
    from intarsia.cli.arguments.model import ModelArgument
    from intarsia.cli.arguments.output import check_writable, refuse_to_replace
    from intarsia.cli.arguments.program import open_program
    from intarsia.cli.arguments.shape import parse_shapes

    console: Console = context.obj
    trust = Trust(untrusted, require_signature)
    if output is not None:
        check_writable(output)
    argument = ModelArgument.parse(model)
    if output is not None:
        refuse_to_replace(output, argument.source)
    program = open_program(argument, parse_shapes(shapes), toolchain, threads, console.note, trust)
    arrays = program.inputs(inputs, seed, console.note)
    results = program.executable.run_flat(**arrays)
    names = [info.name for info in program.executable.outputs]
    summaries = [ArraySummary.of(name, value) for name, value in zip(names, results, strict=True)]
    blocks: list[Block] = [Table(HEADERS, tuple(summary.cells() for summary in summaries), NUMERIC)]
    if output is not None:
        size = save_npz(output, dict(zip(names, results, strict=True)))
        blocks.append(f"wrote {output} ({size_text(size)})")
    document = {
        "model": model,
        "toolchain": program.toolchains,
        "outputs": [summary.to_json() for summary in summaries],
        "file": None if output is None else str(output),
    }
    return Report(document, tuple(blocks))


def save_npz(path: Path, values: Mapping[str, Value]) -> int:
    """Write arrays by name atomically; texts as Unicode arrays, so that nothing is pickled.

    Unlike `numpy.savez` it takes any name, "file" included.

    Returns:
        Size of the file in bytes.

    Raises:
        OutputError: The file cannot be written, or a value is not an array.
    """
    from intarsia.support.files import write_atomically

    for name, value in values.items():
        if not isinstance(value, np.ndarray):
            raise OutputError(
                f"cannot write {path}: output {name!r} is not an array, and .npz files contain arrays only"
            )
    with write_atomically(path) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            for name, value in values.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, _storable(value), allow_pickle=False)
        return temporary.stat().st_size


def _storable(value: Any) -> Any:
    return value.astype(np.str_) if value.dtype.kind in "OT" else value
