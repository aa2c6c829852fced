"""`intarsia opt`: apply passes to a model, and print the program."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from intarsia.cli.arguments.completion import complete_pass_text
from intarsia.cli.arguments.options import DisabledPasses, Model, PassConfig, Shapes
from intarsia.cli.reports.report import Report
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.transform import Pass

DEFAULT_PASSES = "default_heuristic"

Passes = Annotated[
    str,
    typer.Option(
        "--passes",
        metavar="TEXT",
        help="Passes and pipelines to apply, in order, regardless of their level: "
        '"InferType, FoldConstant{max_bytes=1024}". intarsia passes NAME lists the options of one.',
        autocompletion=complete_pass_text,
    ),
]
OptLevel = Annotated[
    int, typer.Option("--opt-level", metavar="N", help="Optimization level of passes inside pipelines.")
]


def opt(
    model: Model,
    *,
    passes: Passes = DEFAULT_PASSES,
    opt_level: OptLevel = 2,
    disable: DisabledPasses,
    config: PassConfig,
    shapes: Shapes,
) -> Report:
    """Apply passes to a model, and print the program.

    Tuning passes decide by measuring, which intarsia tune does; here they are an error.
    """
    from intarsia.cli.arguments.model import ModelArgument
    from intarsia.cli.arguments.pass_settings import parse_pass_context
    from intarsia.cli.arguments.shape import parse_shapes
    from intarsia.transform import PassContext, Sequential, read_passes

    argument = ModelArgument.parse(model)
    if argument.is_artifact:
        raise UsageError("an artifact is compiled already", help="pass the model that it was tuned from")
    given = read_passes(passes)
    _refuse_tuning(given, model)
    asked = parse_pass_context(config, disable)
    required = [item.info.name for item in given]
    ctx = PassContext(opt_level, required, asked.disabled_pass, asked.config)
    program = Sequential(given, name="opt")(argument.import_model(parse_shapes(shapes)), ctx)
    document = {"model": model, "passes": [str(item) for item in given], "program": str(program)}
    return Report(document, (str(program),))


def _refuse_tuning(passes: Sequence[Pass], model: str) -> None:
    """Refuse passes that need measurements.

    Raises:
        UsageError: There is one.
    """
    from intarsia.transform import Sequential
    from intarsia.tune.heuristic_pass import FeedbackPass

    for item in Sequential(passes).flattened():
        if isinstance(item, FeedbackPass):
            raise UsageError(
                f"{item.info.name} decides by measuring",
                help=f"intarsia tune {model} --passes {shlex.quote(str(item))}",
            )
