"""`intarsia explain`: the regions of a model, their toolchains, and the alternatives that were tried."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from intarsia.cli.arguments.database_path import Place, open_database
from intarsia.cli.arguments.options import (
    Inputs,
    ModelOrArtifact,
    Ranges,
    Seed,
    ShapesAndSizes,
    Targets,
    Threads,
)
from intarsia.cli.arguments.trust import TRUSTED, RequireSignature, Trust, Untrusted
from intarsia.cli.console.console import Console
from intarsia.cli.reports.report import Report
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.cli.arguments.model import ModelArgument
    from intarsia.report.explanation import Explanation


def explain(
    context: typer.Context,
    model: ModelOrArtifact,
    node: Annotated[
        str | None,
        typer.Argument(
            metavar="[NODE]",
            help="Only candidates with this node: its ONNX name, its number, or an operator.",
        ),
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="List every candidate.")] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show the candidates of tuning passes as a tree instead.")
    ] = False,
    layers: Annotated[
        bool,
        typer.Option("--layers", help="Show the algorithms of convolutions and their errors instead."),
    ] = False,
    targets: Targets,
    shapes: ShapesAndSizes,
    inputs: Inputs,
    ranges: Ranges,
    seed: Seed = 0,
    threads: Threads = None,
    database: Place = None,
    untrusted: Untrusted = False,
    require_signature: RequireSignature = None,
) -> Report:
    """Explain which toolchain runs what, and what else was tried.

    An artifact contains the explanation of its tuning run. For a model, the stored measurements of this
    machine
    with the same inputs are shown; nothing is measured.
    """
    from intarsia.cli.arguments.model import ModelArgument
    from intarsia.cli.arguments.program import special_inputs
    from intarsia.cli.arguments.range import parse_ranges
    from intarsia.cli.arguments.shape import parse_shape_words
    from intarsia.cli.arguments.target import parse_target
    from intarsia.cli.reports.explain_report import explain_report
    from intarsia.cli.reports.trace_report import trace_report
    from intarsia.driver.explain.model import explain_model
    from intarsia.measure.inputs import with_input_ranges
    from intarsia.toolchain.this_host import this_host

    argument = ModelArgument.parse(model)
    if trace and (node is not None or everything or not argument.is_artifact):
        raise UsageError(
            "--trace needs an artifact, and no NODE or --all",
            help="intarsia tune MODEL writes one; then run: intarsia explain MODEL.intarsia --trace",
        )
    if layers and (node is not None or everything or trace or not argument.is_artifact):
        raise UsageError(
            "--layers needs an artifact, and no NODE, --all or --trace",
            help="intarsia tune MODEL writes one; then run: intarsia explain MODEL.intarsia --layers",
        )
    trust = Trust(untrusted, require_signature)
    if trust != TRUSTED and not layers:
        raise UsageError("--untrusted and --require-signature need --layers: only that loads kernels")
    if argument.is_artifact:
        argument.refuse_choices(
            target=argument.target or targets, shape=shapes, input=inputs, range=ranges, threads=threads
        )
        if layers:
            from intarsia.cli.reports.layers_report import layers_report

            return layers_report(Path(argument.source), trust)
        explanation = _read_artifact(Path(argument.source))
    else:
        _refuse_target(argument)
        sizes = parse_shape_words(shapes)
        module = with_input_ranges(argument.import_model(sizes.shapes), parse_ranges(ranges))
        console: Console = context.obj
        given = special_inputs(module["main"], inputs, seed, console.note)
        chosen = [parse_target(text, threads) for text in targets] or None
        with open_database(database, on_wait=console.note) as opened:
            explanation = explain_model(
                module,
                argument.name,
                opened,
                this_host(),
                chosen,
                None if chosen else threads,
                given,
                sizes.dims,
            )
    if trace:
        return trace_report(explanation)
    return explain_report(explanation, node, everything=everything)


def _read_artifact(path: Path) -> Explanation:
    from intarsia.report.explanation import Explanation
    from intarsia.runtime.artifact_load import read_explanation

    text = read_explanation(path)
    if text is None:
        raise UsageError(
            f"{path} contains no explanation",
            help="artifacts of intarsia tune contain one; intarsia explain MODEL shows stored measurements",
        )
    return Explanation.from_text(text, str(path))


def _refuse_target(argument: ModelArgument) -> None:
    if argument.target:
        raise UsageError(
            f"explain takes a model without @{argument.target}", help=f'write --target "{argument.target}"'
        )
