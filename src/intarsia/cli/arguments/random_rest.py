"""Random arrays for inputs that the user has not given."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from intarsia.cli.arguments.input import Array
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.ir import Function, SymbolicDim, TensorType, Type, Var

Note: TypeAlias = Callable[[str], None]


def with_random_rest(
    main: Function,
    given: Mapping[str, Array],
    shapes: Mapping[str, Sequence[int]],
    seed: int,
    note: Note,
    examples: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> dict[str, Array]:
    """Return the given arrays, and seeded random ones for the other parameters.

    A symbolic dimension takes its size from a given array or shape. Where none of the open inputs has one,
    they get the shapes that are known to work, with a note.

    Args:
        main: Main function of the program.
        given: Arrays by parameter name.
        shapes: Shapes by parameter name, where the program leaves them open, or single sizes by name of a
            symbolic dimension.
        seed: Random seed.
        note: Function that is called with a note about random inputs, if others are given.
        examples: Shapes that are known to work, by parameter name.

    Raises:
        UsageError: A shape is for an unknown input, or missing; the message shows the flags.
    """
    from intarsia.ir import SymbolicDim, with_fields
    from intarsia.measure.inputs import random_inputs, with_shapes

    by_dim = {SymbolicDim(name): size for name, size in sizes_by_dim(main, shapes).items()}
    has_shapes, shapes = bool(shapes), of_inputs(main, shapes)
    sizes = by_dim | _known_sizes(main, {**shapes, **{name: array.shape for name, array in given.items()}})
    rest = note_random_rest(main, given, seed, note)
    fixed = [with_fields(param, checked_type=_fixed(param, shapes, sizes)) for param in rest]
    if not has_shapes and not given and examples.keys() >= _open_types(fixed).keys() != set():
        listed = " ".join(_flag(name, examples[name]) for name in _open_types(fixed))
        note(f"random inputs have the sizes of the self test: {listed}")
        fixed = [with_fields(param, checked_type=_fixed(param, examples, sizes)) for param in rest]
    _refuse_symbolic(fixed, examples)
    # Shapes of given arrays count as well: they may be what a random length must be within.
    sized = with_shapes(main, {name: array.shape for name, array in given.items()})
    return {**given, **random_inputs(sized, seed, {param.name: param.checked_type for param in fixed})}


def of_inputs(main: Function, shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of inputs, without single sizes of dimensions, which an import has put in."""
    names = {param.name for param in main.params}
    return {name: tuple(shape) for name, shape in shapes.items() if name in names}


def sizes_by_dim(main: Function, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return the single sizes that are given by name of a symbolic dimension.

    Raises:
        UsageError: A name is neither that of an input nor that of a dimension.
    """
    from intarsia.ir import SymbolicDim, TensorType

    names = [param.name for param in main.params]
    types = [param.checked_type for param in main.params]
    dims = [dim for type_ in types if isinstance(type_, TensorType) for dim in type_.shape or ()]
    symbols = dict.fromkeys(dim.name for dim in dims if isinstance(dim, SymbolicDim))
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        if name in names:
            continue
        if name not in symbols or len(shape) != 1:
            listed = f"; its symbolic dimensions: {', '.join(symbols)}" if symbols else ""
            raise UsageError(f"there is no input {name!r}", help=f"the inputs: {', '.join(names)}{listed}")
        sizes[name] = shape[0]
    return sizes


def note_random_rest(main: Function, given: Mapping[str, Array], seed: int, note: Note) -> list[Var]:
    """Return the parameters that have no array; a note names them if others have one."""
    rest = [param for param in main.params if param.name not in given]
    if given and rest:
        note(f"no --input for {', '.join(param.name for param in rest)}: random numbers (seed {seed})")
    return rest


def _open_types(params: Sequence[Var]) -> dict[str, TensorType]:
    """Return the types without a static shape by name."""
    from intarsia.ir import TensorType

    types = {param.name: param.checked_type for param in params}
    return {
        name: type_ for name, type_ in types.items() if isinstance(type_, TensorType) and not type_.is_static
    }


def _flag(name: str, shape: Sequence[int]) -> str:
    return f"--shape {shlex.quote(name)}={','.join(map(str, shape))}"


def _refuse_symbolic(params: Sequence[Var], examples: Mapping[str, Sequence[int]]) -> None:
    """Raise one error for all inputs without a static shape, so that one retry is enough."""
    from intarsia.measure.inputs import example_shape

    open_types = _open_types(params)
    if not open_types:
        return
    listed = ", ".join(f"{name!r} has the symbolic shape {type_}" for name, type_ in open_types.items())
    flags = (_flag(name, examples.get(name) or example_shape(type_)) for name, type_ in open_types.items())
    raise UsageError(f"input {listed}", help=f"fix it: {' '.join(flags)}")


def _known_sizes(main: Function, shapes: Mapping[str, Sequence[int]]) -> dict[SymbolicDim, int]:
    from intarsia.ir import ANY, SymbolicDim, TensorType

    sizes: dict[SymbolicDim, int] = {}
    for param in main.params:
        type_ = param.checked_type
        if param.name in shapes and isinstance(type_, TensorType) and type_.shape is not None:
            for dim, size in zip(type_.shape, shapes[param.name], strict=False):
                if isinstance(dim, SymbolicDim) and dim != ANY:
                    sizes.setdefault(dim, size)
    return sizes


def _fixed(param: Var, shapes: Mapping[str, Sequence[int]], sizes: Mapping[SymbolicDim, int]) -> Type | None:
    from intarsia.ir import SymbolicDim, TensorType

    type_ = param.checked_type
    if not isinstance(type_, TensorType):
        return type_
    if param.name in shapes:
        return TensorType(tuple(shapes[param.name]), type_.dtype)
    if type_.shape is None:
        return type_
    dims = (sizes.get(dim, dim) if isinstance(dim, SymbolicDim) else dim for dim in type_.shape)
    return TensorType(tuple(dims), type_.dtype)
