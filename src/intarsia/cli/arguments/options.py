"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from intarsia.cli.arguments.completion import complete_model, complete_pass_text, complete_toolchain

MODEL_HELP = "A model (.onnx file or zoo:NAME), or an artifact of intarsia tune."

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
        help="Static shape of an input, name=1,3,224,224 or name:1x3x224x224, or sizes of symbolic "
        "dimensions: batch=8,seq=128. May be repeated.",
        default_factory=list,
        show_default=False,
    ),
]
ShapesAndSizes: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--shape",
        metavar="SHAPE",
        help="Shape of an input, name=1,3,224,224, or sizes of symbolic dimensions: "
        "batch=1..8,seq=1..512@log, or seq=16:0.5,128:0.5 with shares of calls, or input[axis]=1..8. "
        "May be repeated.",
        default_factory=list,
        show_default=False,
    ),
]
Inputs: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--input",
        metavar="FILE",
        help="Input data: FILE.npz by name, name=FILE.npy, or FILE.npy for a model with one input. "
        "May be repeated. Other inputs are random.",
        default_factory=list,
        show_default=False,
    ),
]
Seed: TypeAlias = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="Random seed of the inputs.")
]
Threads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--threads", metavar="N", min=1, help="Threads of each toolchain. [default: all usable cores]"
    ),
]
Toolchains: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--toolchain",
        metavar="NAME",
        help='Toolchain for a model: openvino, or a target such as "cpu -toolchain=openvino -threads=2". '
        "May be repeated.",
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
        help='Toolchain to compare: openvino, or "cpu -toolchain=openvino -threads=2". May be repeated. '
        "[default: every installed toolchain]",
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
        help='Toolchain for a model: openvino, or a target such as "cpu -toolchain=openvino -threads=2".',
        autocompletion=complete_toolchain,
    ),
]
Budget: TypeAlias = Annotated[
    str, typer.Option("--budget", metavar="TIME", help="Time for measurements: 30 (seconds), 90s, 5m, 1h.")
]
Trials: TypeAlias = Annotated[
    int | None,
    typer.Option("--trials", metavar="N", min=1, help="Maximum number of measured candidates."),
]
Ranges: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--range",
        metavar="RANGE",
        help="Range of random integers of an input: ids=0,30522 for 0 to 30521. May be repeated.",
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
PassConfig: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--pass-config",
        metavar="KEY=VALUE",
        help="Option of the passes: FuseOps.max_depth=16, tir.UnrollLoop.auto_max_step=64. intarsia passes "
        "lists the keys. May be repeated.",
        default_factory=list,
        show_default=False,
    ),
]
DisabledPasses: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--disable-pass",
        "--disable",
        metavar="NAME",
        help="Pass not to apply, wherever it is. May be repeated.",
        autocompletion=complete_pass_text,
        default_factory=list,
        show_default=False,
    ),
]
