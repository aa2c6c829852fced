"""`intarsia zoo`: built-in models, without download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from intarsia.cli.arguments.completion import complete_zoo
from intarsia.cli.reports.report import Report
from intarsia.cli.reports.table import Table
from intarsia.support.units import size_text


def list_models() -> Report:
    """List the built-in models.

    Every command accepts them as zoo:NAME.
    """
    from intarsia.frontend.zoo import zoo

    models = zoo()
    rows = tuple((model.name, model.family.value, model.description) for model in models)
    names = ("name", "family", "description")
    return Report(
        {"models": [dict(zip(names, row, strict=True)) for row in rows]},
        (Table(names, rows), "any command takes one of them: intarsia tune zoo:NAME"),
    )


def export_model(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a built-in model (see intarsia zoo list).",
            autocompletion=complete_zoo,
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Output file. [default: NAME.onnx]")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Random seed of the weights.")] = 0,
) -> Report:
    """Export a built-in model as an ONNX file."""
    from intarsia.cli.arguments.output import check_writable
    from intarsia.frontend.zoo import build_model, zoo_model
    from intarsia.support.files import write_atomically

    path = Path(f"{zoo_model(name).name}.onnx") if output is None else output
    check_writable(path)
    data = build_model(name, seed).SerializeToString()
    with write_atomically(path) as temporary:
        temporary.write_bytes(data)
    document = {"model": name, "seed": seed, "file": str(path), "bytes": len(data)}
    return Report(document, (f"wrote {path} ({size_text(len(data))})",))
