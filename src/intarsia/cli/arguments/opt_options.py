"""Options of `intarsia opt`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from intarsia.cli.arguments.completion import complete_model, complete_pass_text


def _names(flag: str, help_text: str) -> Any:
    """Return the declaration of an option with the name of a pass, which may be repeated."""
    return typer.Option(
        flag,
        metavar="PASS",
        help=f"{help_text} May be repeated.",
        autocompletion=complete_pass_text,
        default_factory=list,
        show_default=False,
    )


OptModel: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="An .onnx file, program text in a .txt file, or zoo:NAME.",
        autocompletion=complete_model,
        show_default=False,
    ),
]
Pipeline: TypeAlias = Annotated[
    str,
    typer.Option(
        "--pipeline",
        "--passes",
        metavar="TEXT",
        help="Passes and pipelines to apply, in order, regardless of their level: "
        '"InferType, FoldConstant{max_bytes=1024}". intarsia passes NAME lists the options of one.',
        autocompletion=complete_pass_text,
    ),
]
OptLevel: TypeAlias = Annotated[
    int, typer.Option("--opt-level", metavar="N", help="Optimization level of passes inside pipelines.")
]
OptConfig: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--config",
        "--pass-config",
        metavar="KEY=VALUE",
        help="Option of the passes: FuseOps.max_depth=16. intarsia passes lists the keys. May be repeated.",
        default_factory=list,
        show_default=False,
    ),
]
PrintBefore: TypeAlias = Annotated[list[str], _names("--print-ir-before", "Print the program before a pass.")]
PrintAfter: TypeAlias = Annotated[list[str], _names("--print-ir-after", "Print the program after a pass.")]
PrintBeforeAll: TypeAlias = Annotated[
    bool, typer.Option("--print-ir-before-all", help="Print the program before every pass.")
]
PrintAfterAll: TypeAlias = Annotated[
    bool, typer.Option("--print-ir-after-all", help="Print the program after every pass.")
]
PrintAfterChanged: TypeAlias = Annotated[
    bool, typer.Option("--print-ir-after-changed", help="Print the program after passes that changed it.")
]
Timing: TypeAlias = Annotated[bool, typer.Option("--timing", help="Print the time of each pass.")]
Memory: TypeAlias = Annotated[bool, typer.Option("--memory", help="Print the memory of each pass; slower.")]
Statistics: TypeAlias = Annotated[
    bool, typer.Option("--stats", help="Print what each pass did to operators and constants.")
]
Remarks: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--remarks",
        metavar="REGEX",
        help='Print what passes say about the program, where "PASS: LEVEL: TEXT" matches: "." for all, '
        '"ConvertLayout", "missed".',
    ),
]
VerifyEach: TypeAlias = Annotated[
    bool, typer.Option("--verify-each", help="Verify the program after each pass that changed it.")
]
StopAfter: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--stop-after", metavar="PASS", help="Last pass that runs.", autocompletion=complete_pass_text
    ),
]
Check: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Run every pass in a process of its own first, and check that it ends, that the program keeps "
        "the rules of the language and its devices, and computes the same on the reference toolchain.",
    ),
]
ReproducerFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--reproducer",
        metavar="FOLDER",
        help="Write a failing pass with the program before it into a folder. Implies --check.",
    ),
]
ReduceFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--reduce",
        metavar="FOLDER",
        help="Replay a folder of --reproducer, and reduce its program. No MODEL is given.",
    ),
]
TimeLimit: TypeAlias = Annotated[
    float,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        min=1,
        help="CPU time of a pass and its check, for --check and --reduce.",
    ),
]
Outputs: TypeAlias = Annotated[
    list[Path],
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File for the program instead of the standard output: .onnx, .txt (with constants beside it), "
        ".dot, or .svg (needs Graphviz). May be repeated.",
        default_factory=list,
        show_default=False,
    ),
]
