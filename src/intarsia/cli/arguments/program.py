"""A model or an artifact, compiled and ready to call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from intarsia.cli.arguments.input import Array, read_inputs
from intarsia.cli.arguments.model import ModelArgument
from intarsia.cli.arguments.random_rest import Note, note_random_rest, of_inputs, with_random_rest
from intarsia.cli.arguments.target import parse_target, target_text
from intarsia.cli.arguments.trust import TRUSTED, Trust
from intarsia.cli.arguments.usual_sizes import with_usual_sizes
from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import TensorInfo
from intarsia.support.errors import (
    CompileError,
    IntarsiaError,
    MissingToolchainError,
    UnsupportedModelError,
)
from intarsia.target.reference import REFERENCE, REFERENCE_TARGET

if TYPE_CHECKING:
    from intarsia.ir import Function, IRModule
    from intarsia.target import Target

NO_ENGINE: Final = "no inference engine works here"
INSTALL: Final = "pip install 'intarsia[cpu]' installs three; intarsia doctor shows what is wrong with each"


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled program, with its definition.

    Attributes:
        name: Name in tables.
        toolchains: Names of its toolchains, for tables.
        executable: Compiled program.
        shapes: Shapes of random inputs that the user has given, by name.
        definition: Function that returns the program; that of an artifact is parsed, which is slow.
    """

    name: str
    toolchains: str
    executable: Executable
    shapes: Mapping[str, Sequence[int]]
    definition: Callable[[], IRModule]

    @property
    def module(self) -> IRModule:
        """Program that the reference result is computed from."""
        return self.definition()

    def inputs(self, files: Sequence[str], seed: int, note: Note) -> dict[str, Array]:
        """Return arrays for all inputs: those of files, strings of the self test, and random ones.

        The program is only parsed if some are random.
        """
        given = read_inputs(files, self.executable.inputs)
        if not self.shapes:  # other shapes than those of the self test
            given = tested_strings(self.executable) | given
        if len(given) == len(self.executable.inputs):
            return given
        examples = tested_shapes(self.executable)
        main = self.module["main"]
        if not examples or given or self.shapes:
            main = with_usual_sizes(self.module, given, self.shapes, note)
        return with_random_rest(main, given, of_inputs(main, self.shapes), seed, note, examples)

    def bound_call(self, inputs: Mapping[str, Array]) -> Callable[[], object]:
        """Return a call without arguments, for timing; the inputs must be those of the program."""
        arrays = [inputs[info.name] for info in self.executable.inputs]
        return lambda: self.executable.run_flat(*arrays)


def tested_shapes(executable: Executable) -> dict[str, tuple[int, ...]]:
    """Return the input shapes of the self test by name; none without a self test."""
    test = executable.saved_test
    if test is None:
        return {}
    return {info.name: array.shape for info, array in zip(executable.inputs, test.inputs, strict=True)}


def tested_strings(executable: Executable) -> dict[str, Array]:
    """Return the string inputs of the self test by name: random words rarely mean anything to a program."""
    test = executable.saved_test
    if test is None:
        return {}
    pairs = zip(executable.inputs, test.inputs, strict=True)
    return {info.name: array for info, array in pairs if info.dtype == "string"}


def special_inputs(main: Function, files: Sequence[str], seed: int, note: Note) -> dict[str, Array]:
    """Return the arrays of files; the other inputs are random, with a note if files give some of them.

    Raises:
        InputError: A file that cannot be read, or an array for an unknown input.
    """
    arrays = read_inputs(files, _infos(main))
    note_random_rest(main, arrays, seed, note)
    return arrays


def main_inputs(
    module: IRModule,
    files: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
    seed: int,
    note: Note,
) -> dict[str, Array]:
    """Return arrays for all parameters: those of files, and seeded random ones for the others.

    Args:
        module: The program.
        files: Values of --input.
        shapes: Shapes by parameter name, where the program leaves them open.
        seed: Random seed.
        note: Function that is called with notes about sizes that were chosen, and about random inputs, if
            others are given.

    Raises:
        InputError: A file that cannot be read, or an array for an unknown input.
        UsageError, InvalidModelError: Sizes that do not fit.
    """
    given = read_inputs(files, _infos(module["main"]))
    main = with_usual_sizes(module, given, shapes, note)
    return with_random_rest(main, given, shapes, seed, note)


def _infos(main: Function) -> list[TensorInfo]:
    from intarsia.ir import TensorType

    types = ((param.name, param.checked_type) for param in main.params)
    return [
        TensorInfo(name, type_.dtype.value if isinstance(type_, TensorType) else str(type_), None)
        for name, type_ in types
    ]


def open_program(
    argument: ModelArgument,
    shapes: Mapping[str, Sequence[int]],
    toolchain: str | None,
    threads: int | None,
    note: Note,
    trust: Trust = TRUSTED,
) -> Program:
    """Load an artifact, or compile a model for a toolchain.

    Args:
        argument: Model argument; a toolchain in it takes precedence over `toolchain`.
        shapes: Static shapes of a model, or shapes of the random inputs of an artifact.
        toolchain: Toolchain of a model; None for the first engine that supports it.
        threads: Number of threads of the toolchain.
        note: Function that is called with a note for each engine that does not support it.
        trust: Trust in an artifact.

    Raises:
        UsageError: The model or toolchain does not exist, or an option does not apply to an artifact.
        ModelError, CompileError, ArtifactError: The program cannot be compiled or loaded.
    """
    if argument.is_artifact:
        argument.refuse_choices(toolchain=argument.target or toolchain, threads=threads)
        return load_artifact(argument, shapes, trust)
    trust.refuse_for_models(argument.source)
    from intarsia.frontend.onnx import import_notes

    requested = argument.target or toolchain
    target = parse_target(requested, threads) if requested else None
    module = argument.import_model(shapes)
    for text in import_notes(module):
        note(text)
    executable, chosen = compile_model(module, target, threads, note)
    open_shapes = of_inputs(module["main"], shapes)
    return Program(argument.text, target_text(chosen), executable, open_shapes, lambda: module)


def load_artifact(
    argument: ModelArgument, shapes: Mapping[str, Sequence[int]], trust: Trust = TRUSTED
) -> Program:
    """Load an artifact; the shapes are for its random inputs.

    Raises:
        ArtifactError: The artifact is damaged or does not fit this machine.
        MissingToolchainError: The artifact needs a toolchain that is not usable here.
    """
    executable = trust.load(Path(argument.source))
    toolchains = dict.fromkeys(kernel.source.toolchain for kernel in executable.kernels)
    return Program(
        argument.text, ", ".join(toolchains), executable, shapes, lambda: _parse_program(executable)
    )


def compile_whole(module: IRModule, target: Target) -> Executable:
    """Compile a whole program for one target.

    Raises:
        CompileError, UnsupportedModelError: The toolchain does not support it.
    """
    from intarsia.build import build
    from intarsia.passes import partition_whole

    return build(partition_whole(module, target))


def engine_targets(threads: int | None) -> tuple[Target, ...]:
    """Return the targets of the engines that work here, without the reference.

    Raises:
        MissingToolchainError: No engine works.
    """
    from intarsia.toolchain import targets

    engines = [target for target in targets() if target.toolchain != REFERENCE]
    if not engines:
        raise MissingToolchainError(NO_ENGINE, help=INSTALL)
    return tuple(engines if threads is None else (target.with_options(threads=threads) for target in engines))


def _parse_program(executable: Executable) -> IRModule:
    """Return the program of an artifact, without its partition: uses of inputs are looked for in @main."""
    from intarsia.ir.parser import parse_module
    from intarsia.passes.without_toolchains import without_toolchains

    return without_toolchains(parse_module(executable.program, executable.provenance.program_constants))


def compile_model(
    module: IRModule, target: Target | None, threads: int | None, note: Note
) -> tuple[Executable, Target]:
    """Compile a whole program for a target, or for the first engine that supports it.

    Returns:
        The program, and the target that it is compiled for.

    Raises:
        CompileError, UnsupportedModelError: No toolchain supports it.
    """
    if target is not None:
        return compile_whole(module, target), target
    refusals: list[IntarsiaError] = []
    for candidate in (*_engines_if_any(threads), REFERENCE_TARGET):
        try:
            return compile_whole(module, candidate), candidate
        except (CompileError, UnsupportedModelError) as error:
            refusals.append(error)
            note(f"{candidate.toolchain} does not support the model: {error.problem}")
    raise refusals[-1]


def _engines_if_any(threads: int | None) -> tuple[Target, ...]:
    try:
        return engine_targets(threads)
    except MissingToolchainError:
        return ()
