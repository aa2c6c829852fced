"""Check a caller's buffers for the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from intarsia.ir.dtype import DType
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.plan import Structure, TensorInfo
from intarsia.runtime.tensor_info import is_tensor, shape_text, static_shape
from intarsia.support.errors import InputError


def accept_outputs(
    infos: Sequence[TensorInfo], given: Sequence[Array] | Mapping[str, Array], inputs: Sequence[Value]
) -> list[Array]:
    """Return the caller's buffers in the order of the outputs.

    Raises:
        InputError: Wrong count or name, not a writeable C-contiguous array of the right element type and
            shape, or memory shared with an input or another output.
    """
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in {info.name for info in infos}]
        if unknown:
            raise InputError(f'there is no output "{unknown[0]}"', help=_help(infos))
        given = [given[info.name] for info in infos if info.name in given]
    if len(given) != len(infos):
        raise InputError(f"{len(given)} output buffers were given, expected {len(infos)}", help=_help(infos))
    for index, (info, array) in enumerate(zip(infos, given, strict=True)):
        _check(info, array)
        others = [*inputs, *given[:index]]
        if any(isinstance(other, np.ndarray) and np.may_share_memory(array, other) for other in others):
            raise InputError(f'output "{info.name}" shares memory with an input or another output')
    return list(given)


def new_outputs(infos: Sequence[TensorInfo]) -> list[Array]:
    """Return an uninitialised buffer for each output.

    Raises:
        InputError: An output is no tensor, or has no fixed shape.
    """
    shapes = [static_shape(info) if is_tensor(info) else None for info in infos]
    for info, shape in zip(infos, shapes, strict=True):
        if shape is None:
            raise InputError(
                f'output "{info.name}" has no fixed shape', help="give a buffer for each output to bind()"
            )
    return [
        np.empty(shape, DType(info.dtype).numpy)
        for info, shape in zip(infos, shapes, strict=True)
        if shape is not None
    ]


def structured(structure: Structure, flat: Sequence[Value]) -> object:
    """Return a flat list of outputs nested as a structure has them."""
    if isinstance(structure, int):
        return flat[structure]
    return tuple(structured(part, flat) for part in structure)


def copy_results(infos: Sequence[TensorInfo], results: Sequence[Value], buffers: Sequence[Array]) -> None:
    """Copy the results that were not computed in their buffers.

    Raises:
        InputError: A result has another shape than its buffer.
    """
    for info, result, buffer in zip(infos, results, buffers, strict=True):
        if result is not buffer:
            check_result_shape(info, result, buffer)
            np.copyto(buffer, result)  # type: ignore[arg-type]  # accept_outputs lets only tensors through


def check_result_shape(info: TensorInfo, result: Value, buffer: Array) -> None:
    """Refuse to copy a result into a buffer of another shape.

    Raises:
        InputError: The shapes differ (only possible where the program does not know them).
    """
    if isinstance(result, np.ndarray) and result.shape != buffer.shape:
        raise InputError(
            f'output "{info.name}" has shape {shape_text(result.shape)}, '
            f"but its buffer has shape {shape_text(buffer.shape)}"
        )


def _check(info: TensorInfo, array: object) -> None:
    if not is_tensor(info):
        raise InputError(f'output "{info.name}" is a {info.dtype}, which cannot be written into a buffer')
    if not isinstance(array, np.ndarray):
        kind = type(array).__name__
        raise InputError(f'the buffer of output "{info.name}" is of type {kind}, expected a NumPy array')
    if array.dtype != DType(info.dtype).numpy:
        raise InputError(f'output "{info.name}" has element type {array.dtype}, expected {info.dtype}')
    if static_shape(info) not in {None, array.shape}:
        expected = shape_text(info.shape)
        raise InputError(f'output "{info.name}" has shape {shape_text(array.shape)}, expected {expected}')
    if not array.flags.carray:
        raise InputError(f'the buffer of output "{info.name}" is not a writeable C-contiguous array')


def _help(infos: Sequence[TensorInfo]) -> str:
    return f"the outputs are {', '.join(info.name for info in infos)}"
