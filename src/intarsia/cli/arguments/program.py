"""A model or an artifact, compiled and ready to call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from intarsia.cli.arguments.input import Array, read_inputs
from intarsia.cli.arguments.model import ModelArgument
from intarsia.cli.arguments.random_rest import Note, with_random_rest
from intarsia.cli.arguments.target import parse_target, target_text
from intarsia.cli.arguments.trust import TRUSTED, Trust
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
    """Something that runs, and what it computes.

    Attributes:
        name: How tables call it.
        toolchains: Who runs it, for people.
        executable: What to call.
        shapes: Shapes that the user has given; random inputs have them.
        definition: Gives the program; that of an artifact is parsed, which takes a while.
    """

    name: str
    toolchains: str
    executable: Executable
    shapes: Mapping[str, Sequence[int]]
    definition: Callable[[], IRModule]

    @property
    def module(self) -> IRModule:
        """The program: what is right follows from it."""
        return self.definition()

    def inputs(self, files: Sequence[str], seed: int, note: Note) -> dict[str, Array]:
        """As `main_inputs`, without parsing the program if the files hold all inputs."""
        given = read_inputs(files, self.executable.inputs)
        if len(given) == len(self.executable.inputs):
            return given
        examples = tested_shapes(self.executable)
        return with_random_rest(self.module["main"], given, self.shapes, seed, note, examples)

    def bound_call(self, inputs: Mapping[str, Array]) -> Callable[[], object]:
        """A call without arguments, for timing; the inputs must be those of the program."""
        arrays = [inputs[info.name] for info in self.executable.inputs]
        return lambda: self.executable.run_flat(*arrays)


def tested_shapes(executable: Executable) -> dict[str, tuple[int, ...]]:
    """Shapes of the inputs of its self test by name; none where it has no self test."""
    test = executable.saved_test
    if test is None:
        return {}
    return {info.name: array.shape for info, array in zip(executable.inputs, test.inputs, strict=True)}


def special_inputs(main: Function, files: Sequence[str], seed: int, note: Note) -> dict[str, Array]:
    """Arrays for all parameters as `main_inputs` makes them if there are files; none if all are random.

    Raises:
        InputError, UsageError: As `main_inputs`, in both cases.
    """
    arrays = main_inputs(main, files, {}, seed, note)
    return arrays if files else {}


def main_inputs(
    main: Function,
    files: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
    seed: int,
    note: Note,
    examples: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> dict[str, Array]:
    """Arrays for all parameters: those in the files, and seeded random ones for the rest.

    Args:
        main: The program.
        files: Inputs as the user named them.
        shapes: Shapes by parameter name, where the program leaves them open.
        seed: Of the random numbers.
        note: Told which inputs are random, if others are not.
        examples: Shapes that are known to work, for the error that asks for shapes.

    Raises:
        InputError: A file that cannot be read, or an array for an unknown input.
        UsageError: An input that is to be random has a symbolic shape.
    """
    from intarsia.ir import TensorType

    types = ((param.name, param.checked_type) for param in main.params)
    infos = [
        TensorInfo(name, type_.dtype.value if isinstance(type_, TensorType) else str(type_), None)
        for name, type_ in types
    ]
    return with_random_rest(main, read_inputs(files, infos), shapes, seed, note, examples)


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
        argument: What the user named; a toolchain in it comes before `toolchain`.
        shapes: Shapes to fix in a model, or for the random inputs of an artifact.
        toolchain: Who runs a model; if there is none, the first engine that accepts it.
        threads: Of the toolchain.
        note: Told which engines refused it.
        trust: Trust in an artifact.

    Raises:
        UsageError: What was asked for does not exist, or does not go with an artifact.
        ModelError, CompileError, ArtifactError: It cannot be compiled or loaded.
    """
    if argument.is_artifact:
        argument.refuse_choices(toolchain=argument.target or toolchain, threads=threads)
        return load_artifact(argument, shapes, trust)
    trust.refuse_for_models(argument.place)
    from intarsia.frontend.onnx import import_notes

    wanted = argument.target or toolchain
    target = parse_target(wanted, threads) if wanted else None
    module = argument.import_model(shapes)
    for text in import_notes(module):
        note(text)
    executable, chosen = _compile(module, target, threads, note)
    return Program(argument.text, target_text(chosen), executable, shapes, lambda: module)


def load_artifact(
    argument: ModelArgument, shapes: Mapping[str, Sequence[int]], trust: Trust = TRUSTED
) -> Program:
    """Load an artifact; the shapes are for its random inputs.

    Raises:
        ArtifactError: It is damaged or does not fit this machine.
        MissingToolchainError: It needs a toolchain that is not usable here.
    """
    executable = trust.load(Path(argument.place))
    toolchains = dict.fromkeys(kernel.source.toolchain for kernel in executable.kernels)
    return Program(argument.text, ", ".join(toolchains), executable, shapes, lambda: _parsed(executable))


def compile_whole(module: IRModule, target: Target) -> Executable:
    """The program with all of it given to one toolchain.

    Raises:
        CompileError, UnsupportedModelError: The toolchain refuses it.
    """
    from intarsia.build import build
    from intarsia.passes import partition_whole

    return build(partition_whole(module, target))


def engine_targets(threads: int | None) -> tuple[Target, ...]:
    """The toolchains that work here, without the reference.

    Raises:
        MissingToolchainError: There is none.
    """
    from intarsia.toolchain import targets

    found = [target for target in targets() if target.toolchain != REFERENCE]
    if not found:
        raise MissingToolchainError(NO_ENGINE, help=INSTALL)
    return tuple(found if threads is None else (target.with_options(threads=threads) for target in found))


def _parsed(executable: Executable) -> IRModule:
    from intarsia.ir.parser import parse_module

    return parse_module(executable.program, executable.provenance.program_constants)


def _compile(
    module: IRModule, target: Target | None, threads: int | None, note: Note
) -> tuple[Executable, Target]:
    if target is not None:
        return compile_whole(module, target), target
    refusals: list[IntarsiaError] = []
    for candidate in (*_engines_if_any(threads), REFERENCE_TARGET):
        try:
            return compile_whole(module, candidate), candidate
        except (CompileError, UnsupportedModelError) as error:
            refusals.append(error)
            note(f"{candidate.toolchain} refuses the model: {error.problem}")
    raise refusals[-1]


def _engines_if_any(threads: int | None) -> tuple[Target, ...]:
    try:
        return engine_targets(threads)
    except MissingToolchainError:
        return ()
