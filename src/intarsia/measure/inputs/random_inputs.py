"""Draw seeded random inputs for a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from intarsia.ir import Attrs, DType, Function, IRModule, TensorType, Type, with_fields
from intarsia.measure.inputs.integer_use import integer_uses
from intarsia.measure.inputs.known_shapes import with_shapes
from intarsia.measure.string_inputs import Vocabulary, vocabularies
from intarsia.support.errors import UnsupportedModelError, UsageError

_SMALL_INTEGERS = (0, 8)


def random_inputs(
    function: Function, seed: int = 0, types: Mapping[str, Type | None] | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Draw an array for every parameter: standard normal numbers, integers in the model's declared range.

    Without a declared range (attribute `input_ranges`) the range of integers follows from their use: rows of
    a
    table, 0 and 1 of a mask, lengths within an axis (`integer_use`); 0 to 7 where it is unknown. Booleans are
    true half of the time. Strings are those that the program compares its inputs with, and one other.

    Args:
        function: The program.
        seed: Equal seeds give equal arrays, in every process.
        types: Types of static shape for the parameters that are drawn, by name; default: all parameters with
            their own types.

    Raises:
        UsageError: A dimension is symbolic, so the shape must be given.
        UnsupportedModelError: A parameter is no tensor.
    """
    generator = np.random.default_rng(seed)
    if types is None:
        drawn = {param.name: param.checked_type for param in function.params}
    else:
        drawn = {param.name: types[param.name] for param in function.params if param.name in types}
    sized = with_shapes(function, _static_shapes(drawn))
    used = {name: (use.low, use.high) for name, use in integer_uses(sized).items()}
    ranges = {**used, **declared_ranges(function)}
    words = vocabularies(function)
    return {
        name: _draw(name, type_, ranges.get(name), words.get(name), generator)
        for name, type_ in drawn.items()
    }


def _static_shapes(types: Mapping[str, Type | None]) -> dict[str, tuple[int, ...]]:
    tensors = {name: type_ for name, type_ in types.items() if isinstance(type_, TensorType)}
    return {name: type_.static_shape for name, type_ in tensors.items() if type_.is_static}


def with_input_ranges(mod: IRModule, ranges: Mapping[str, tuple[int, int]]) -> IRModule:
    """Return the module with declared ranges of the random inputs of @main; the same if there are none.

    Args:
        mod: The program.
        ranges: Least integer, and least integer above the range, by parameter name.

    Raises:
        UsageError: There is no such parameter, or it holds no integers.
    """
    if not ranges:
        return mod
    main = mod["main"]
    types = {param.name: param.checked_type for param in main.params}
    for name in ranges:
        type_ = types.get(name)
        if name not in types:
            raise UsageError(f"there is no input {name!r}", help=f"the inputs: {', '.join(types)}")
        if not isinstance(type_, TensorType) or not type_.dtype.is_integer:
            raise UsageError(f"input {name!r} of type {type_} has no range of integers")
    declared = {**declared_ranges(main), **ranges}
    entries = tuple((name, *declared[name]) for name in declared)
    return mod.with_function("main", with_fields(main, attrs=Attrs({**main.attrs, "input_ranges": entries})))


def declared_ranges(function: Function) -> dict[str, tuple[int, int]]:
    """Return the attribute `input_ranges`, ((name, low, high), ...) from the importer, as a dict."""
    ranges: dict[str, tuple[int, int]] = {}
    for entry in cast("tuple[tuple[str, int, int], ...]", function.attrs.get("input_ranges", ())):
        name, low, high = entry
        ranges[name] = (low, high)
    return ranges


def _draw(
    name: str,
    type_: Type | None,
    declared: tuple[int, int] | None,
    words: Vocabulary | None,
    generator: np.random.Generator,
) -> npt.NDArray[Any]:
    if not isinstance(type_, TensorType):
        raise UnsupportedModelError(
            f"no random input can be made for {name!r} of type {type_}", help="pass it with --input"
        )
    if not type_.is_static:
        example = ",".join(map(str, example_shape(type_)))
        raise UsageError(
            f"input {name!r} has the symbolic shape {type_}",
            help=f"fix it: --shape {name}={example}, or shapes={{...}} in Python",
        )
    shape = type_.static_shape
    if words is not None:
        return words.draw(shape, generator)
    if declared is not None:
        return generator.integers(*declared, size=shape).astype(type_.dtype.numpy)
    if type_.dtype is DType.BOOL:
        return generator.integers(0, 2, size=shape).astype(np.bool_)
    if type_.dtype.is_integer:
        return generator.integers(*_SMALL_INTEGERS, size=shape).astype(type_.dtype.numpy)
    if type_.dtype in (DType.COMPLEX64, DType.COMPLEX128):
        parts = generator.standard_normal((2, *shape))
        return np.asarray(parts[0] + 1j * parts[1], dtype=type_.dtype.numpy)
    return np.asarray(generator.standard_normal(shape)).astype(type_.dtype.numpy)


def example_shape(type_: TensorType) -> tuple[int, ...]:
    """Return a shape that a value of the type may have; an image's shape if the rank is unknown."""
    if type_.shape is None:
        return (1, 3, 224, 224)
    return tuple(dim if isinstance(dim, int) else 1 for dim in type_.shape)
