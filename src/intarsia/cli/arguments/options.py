"""Arguments that several commands take, as typer reads them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from intarsia.cli.arguments.completion import complete_model, complete_toolchain

MODEL_HELP = "A model (.onnx or zoo:NAME), or an artifact that tune saved."

Model: TypeAlias = Annotated[
    str, typer.Argument(metavar="MODEL", help="An .onnx file, or zoo:NAME.", autocompletion=complete_model)
]
ModelOrArtifact: TypeAlias = Annotated[
    str, typer.Argument(metavar="MODEL|ARTIFACT", help=MODEL_HELP, autocompletion=complete_model)
]
Shapes: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--shape",
        metavar="SHAPE",
        help="Fix the shape of an input: name=1,3,224,224 or name:1x3x224x224. May be repeated.",
        default_factory=list,
        show_default=False,
    ),
]
Inputs: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--input",
        metavar="FILE",
        help="Inputs: FILE.npz by name, name=FILE.npy, or FILE.npy for a model with one input. "
        "May be repeated. Inputs that are not given are random.",
        default_factory=list,
        show_default=False,
    ),
]
Seed: TypeAlias = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of the random inputs.")]
Threads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--threads", metavar="N", min=1, help="Threads of each toolchain; all usable cores if not given."
    ),
]
Toolchains: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--toolchain",
        metavar="NAME",
        help="Who runs a model: a toolchain, or a target in quotes. May be repeated.",
        autocompletion=complete_toolchain,
        default_factory=list,
        show_default=False,
    ),
]
Targets: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--target",
        metavar="TARGET",
        help='A candidate: openvino, or "cpu -toolchain=openvino -threads=2". May be repeated; '
        "every toolchain if not given.",
        autocompletion=complete_toolchain,
        default_factory=list,
        show_default=False,
    ),
]
Toolchain: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--toolchain",
        metavar="NAME",
        help="Who runs a model: a toolchain, or a target in quotes.",
        autocompletion=complete_toolchain,
    ),
]
Budget: TypeAlias = Annotated[
    str, typer.Option("--budget", metavar="TIME", help="Time for measuring: 30 (seconds), 90s, 5m, 1h.")
]
Trials: TypeAlias = Annotated[
    int | None,
    typer.Option("--trials", metavar="N", min=1, help="Measure at most so many candidates."),
]
Ranges: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--range",
        metavar="RANGE",
        help="Random integers of an input, such as ids=0,30522 for 0 to 30521. May be repeated.",
        default_factory=list,
        show_default=False,
    ),
]
Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Measure on the workers of a Dask scheduler, such as tcp://10.0.0.1:8786.",
    ),
]
