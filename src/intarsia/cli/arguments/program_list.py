"""Several programs under different names, for the commands that set them side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intarsia.cli.arguments.model import ModelArgument
from intarsia.cli.arguments.program import Program, open_program
from intarsia.cli.arguments.random_rest import Note
from intarsia.cli.arguments.target import parse_target
from intarsia.cli.arguments.trust import TRUSTED, Trust
from intarsia.support.errors import UsageError


def open_programs(
    texts: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
    toolchains: Sequence[str],
    threads: int | None,
    note: Note,
    trust: Trust = TRUSTED,
) -> list[Program]:
    """Open each artifact, and each model once for each of the toolchains.

    A model that names its toolchain itself (MODEL@TOOLCHAIN) is opened for that one only. Without
    `toolchains` a model that names none goes to the first engine that accepts it. Toolchains and threads are
    those of the models; an artifact has its own. `trust` is that in the artifacts.

    Raises:
        UsageError: The same program is named twice, or toolchains or threads are given for artifacts only.
        IntarsiaError: One cannot be opened.
    """
    named = [ModelArgument.parse(text) for text in texts]
    if all(argument.is_artifact for argument in named):
        for argument in named:
            argument.refuse_choices(toolchain=toolchains, threads=threads)
    if not any(argument.is_artifact for argument in named):
        trust.refuse_for_models(texts[0])
    wanted = [argument for each in named for argument in _placements(each, toolchains)]
    for number, argument in enumerate(wanted):
        if argument in wanted[:number]:
            raise UsageError(f"{argument.text} is named twice")
        if argument.target:
            parse_target(argument.target)  # a wrong name is told before long imports
    return [
        open_program(
            argument,
            shapes,
            None,
            None if argument.is_artifact else threads,
            note,
            trust if argument.is_artifact else TRUSTED,
        )
        for argument in wanted
    ]


def _placements(argument: ModelArgument, toolchains: Sequence[str]) -> list[ModelArgument]:
    if argument.target or argument.is_artifact or not toolchains:
        return [argument]
    return [ModelArgument(f"{argument.place}@{name}", argument.place, name) for name in toolchains]
