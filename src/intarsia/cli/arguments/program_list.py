"""Several programs with unique names, for commands that compare them."""

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
    """Open each artifact, and each model once per toolchain.

    A model with its own toolchain (MODEL@TOOLCHAIN) is opened for that one only. Without
    `toolchains` a model that names none runs on the first engine that supports it. Toolchains and threads
    apply
    to models; an artifact has its own. `trust` applies to artifacts.

    Raises:
        UsageError: A program is named twice, or toolchains or threads are given with artifacts only.
        IntarsiaError: A program cannot be opened.
    """
    expanded = expand_programs(texts, toolchains, threads, trust)
    return [
        open_program(
            argument,
            shapes,
            None,
            None if argument.is_artifact else threads,
            note,
            trust if argument.is_artifact else TRUSTED,
        )
        for argument in expanded
    ]


def expand_programs(
    texts: Sequence[str], toolchains: Sequence[str], threads: int | None, trust: Trust = TRUSTED
) -> list[ModelArgument]:
    """Return the programs that are named, a model without a toolchain once for each of `toolchains`.

    Raises:
        UsageError: A program is named twice, or options are given that apply to none of the programs.
    """
    named = [ModelArgument.parse(text) for text in texts]
    if all(argument.is_artifact for argument in named):
        for argument in named:
            argument.refuse_choices(toolchain=toolchains, threads=threads)
    if not any(argument.is_artifact for argument in named):
        trust.refuse_for_models(texts[0])
    expanded = [argument for model in named for argument in _expand_toolchains(model, toolchains)]
    for number, argument in enumerate(expanded):
        if argument in expanded[:number]:
            raise UsageError(f"{argument.text} is named twice")
        if argument.target:
            parse_target(argument.target)  # fails for a wrong name before long imports
    return expanded


def _expand_toolchains(argument: ModelArgument, toolchains: Sequence[str]) -> list[ModelArgument]:
    if argument.target or argument.is_artifact or not toolchains:
        return [argument]
    return [ModelArgument(f"{argument.source}@{name}", argument.source, name) for name in toolchains]
