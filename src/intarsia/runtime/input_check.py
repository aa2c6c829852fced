"""Check a caller's arguments against the inputs of a plan, with a fast path for arguments that fit."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

import numpy as np

from intarsia.ir.dim_range import DimRange
from intarsia.ir.dtype import DType
from intarsia.runtime.dlpack import bfloat16_from_dlpack
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.plan import TensorInfo
from intarsia.runtime.tensor_info import info_text, is_tensor, shape_text, static_shape
from intarsia.support.errors import InputError

NO_RANGES: Final[Mapping[str, DimRange]] = MappingProxyType({})

_CONTIGUOUS_AND_ALIGNED: Final = 0x101
"""NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED, as in `ndarray.flags.num`."""


class InputCheck:
    """Binds arguments to inputs and checks them, with a cache of the last shapes that fitted.

    Args:
        inputs: Expected inputs, in order.
        dim_ranges: Sizes that symbolic dimensions may have, by name; any size where there is none.
    """

    def __init__(self, inputs: Sequence[TensorInfo], dim_ranges: Mapping[str, DimRange] = NO_RANGES) -> None:
        self._inputs = tuple(inputs)
        self._dim_ranges = dim_ranges
        self._positions = {info.name: position for position, info in enumerate(inputs)}
        self._fitting: tuple[tuple[object, object], ...] = tuple(
            (DType(info.dtype).numpy if is_tensor(info) else None, static_shape(info)) for info in inputs
        )

    def accept(self, args: Sequence[object], named: Mapping[str, object]) -> Sequence[Value]:
        """Return the arguments in the order of the inputs, as C-contiguous arrays.

        A mapping as the only argument gives the inputs by name.

        Raises:
            InputError: Wrong count, name, element type or shape, or no array.
        """
        if named and not args and named.keys() == self._positions.keys():
            args, named = [named[name] for name in self._positions], {}
        # The fast path (under 1 us) has no call and no allocation: most callers pass the same shapes every
        # time.
        if not named and len(args) == len(self._inputs):
            for value, (dtype, shape) in zip(args, self._fitting, strict=True):
                if (
                    type(value) is not np.ndarray
                    or value.dtype is not dtype
                    or value.shape != shape
                    or value.flags.num & _CONTIGUOUS_AND_ALIGNED != _CONTIGUOUS_AND_ALIGNED
                ):
                    break
            else:
                return args  # type: ignore[return-value]  # the loop has seen that all are arrays
        if len(args) == 1 and not named and isinstance(args[0], Mapping):
            return self.accept((), args[0])
        return self._accept_slowly(self._bind(args, named))

    def _bind(self, args: Sequence[object], named: Mapping[str, object]) -> list[object]:
        if len(args) > len(self._inputs):
            raise InputError(
                f"{len(args)} inputs were given, expected {len(self._inputs)}", help=self._help()
            )
        bound = dict(enumerate(args))
        for name, value in named.items():
            position = self._positions.get(name)
            if position is None:
                close = get_close_matches(name, self._positions, n=1)
                hint = f'did you mean "{close[0]}"?' if close else self._help()
                raise InputError(f'there is no input "{name}"', help=hint)
            if position in bound:
                raise InputError(f'input "{name}" is given twice: by position and by name')
            bound[position] = value
        for position, info in enumerate(self._inputs):
            if position not in bound:
                raise InputError(f'input "{info.name}" is missing', help=self._help())
        return [bound[position] for position in range(len(self._inputs))]

    def _help(self) -> str:
        listed = ", ".join(map(info_text, self._inputs))
        return f"the inputs are {listed}" if listed else "the program has no inputs"

    def _accept_slowly(self, values: list[object]) -> list[Value]:
        sizes: dict[str, tuple[int, TensorInfo]] = {}
        checked = [_check_input(info, value, sizes) for info, value in zip(self._inputs, values, strict=True)]
        for name, (size, info) in sizes.items():
            self._check_range(name, size, info)
        self._fitting = tuple(
            (dtype, value.shape if isinstance(value, np.ndarray) else None)
            for (dtype, _), value in zip(self._fitting, checked, strict=True)
        )
        return checked

    def _check_range(self, name: str, size: int, info: TensorInfo) -> None:
        allowed = self._dim_ranges.get(name)
        if allowed is not None and size not in allowed:
            wider = f"{min(size, allowed.low)}..{max(size, allowed.high)}"
            raise InputError(
                f'dimension "{name}" is {size} in input "{info.name}", expected {allowed}: '
                "the program was checked for these sizes",
                help=f"tune the model for more: intarsia tune --shape {shlex.quote(f'{name}={wider}')}",
            )


def refuse_converted(infos: Sequence[TensorInfo], given: Sequence[object], checked: Sequence[Value]) -> None:
    """Refuse to bind an input that had to be copied: later calls would not see new data in the original.

    Args:
        infos: Expected inputs, in order.
        given: Values for the inputs, as the caller gave them.
        checked: The arrays that were made of it.

    Raises:
        InputError: An array shares no memory with what was given.
    """
    for info, original, value in zip(infos, given, checked, strict=True):
        if value is original or not isinstance(value, np.ndarray):
            continue
        array = _as_array(f'input "{info.name}"', original, info.dtype)
        if isinstance(original, np.generic) or not np.may_share_memory(array, value):
            raise InputError(
                f'input "{info.name}" cannot be bound: it would be copied',
                help=f'give a C-contiguous, aligned array: numpy.require(value, "{info.dtype}", "CA")',
            )


def _check_input(info: TensorInfo, value: object, sizes: dict[str, tuple[int, TensorInfo]]) -> Value:
    if not is_tensor(info):
        return _check_container(info, value)
    array = _as_array(f'input "{info.name}"', value, info.dtype)
    actual, expected = _dtype_name(array), info.dtype
    if actual != expected:
        raise InputError(
            f'input "{info.name}" has element type {actual}, expected {expected}',
            help=f'convert it: value.astype("{expected}")' if expected != DType.STRING else "",
        )
    _check_shape(info, array.shape, sizes)
    return np.require(array, DType(expected).numpy, ["C_CONTIGUOUS", "ALIGNED"])


def _check_container(info: TensorInfo, value: object) -> Value:
    """Accept a list, an array or None for a sequence or optional; the kernel checks its elements."""
    if value is None or isinstance(value, (list, np.ndarray)):
        return value
    return _as_array(f'input "{info.name}"', value, "float32")


def _dtype_name(array: Array) -> str:
    try:
        return DType.of(array).value
    except ValueError:
        return str(array.dtype)


def _check_shape(info: TensorInfo, shape: tuple[int, ...], sizes: dict[str, tuple[int, TensorInfo]]) -> None:
    if info.shape is None:
        return
    fits = len(shape) == len(info.shape) and all(
        isinstance(expected, str) or expected in {-1, actual}
        for actual, expected in zip(shape, info.shape, strict=True)
    )
    if not fits:
        expected_text = shape_text(info.shape)
        raise InputError(f'input "{info.name}" has shape {shape_text(shape)}, expected {expected_text}')
    for size, dim in zip(shape, info.shape, strict=True):
        if isinstance(dim, str) and dim != "?":
            first_size, first_input = sizes.setdefault(dim, (size, info))
            if first_size != size:
                raise InputError(
                    f'dimension "{dim}" is {first_size} in input "{first_input.name}" '
                    f'and {size} in input "{info.name}", expected one size'
                )


def _as_array(subject: str, value: object, dtype: str) -> Array:
    """Convert a caller's value to an array, sharing its memory where possible.

    Args:
        subject: Name of the parameter for errors, such as `input "data"`.
        value: A NumPy array or scalar, or anything with `__dlpack__` in the memory of the CPU.
        dtype: The element type expected, for the help line.

    Raises:
        InputError: It is no array, or its owner does not share it.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if not hasattr(value, "__dlpack__"):
        raise InputError(
            f"{subject} is of type {type(value).__name__}, "
            "expected a NumPy array or an object with __dlpack__",
            help=f'convert it: numpy.asarray(value, dtype="{dtype}")' if _is_plain(value) else "",
        )
    try:
        if dtype == DType.BFLOAT16:
            array = bfloat16_from_dlpack(value)
            if array is not None:
                return array
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{subject} is of type {type(value).__name__}, which cannot be shared with NumPy: {error}",
            help="pass a tensor in CPU memory that needs no gradient, of an element type that NumPy has",
        ) from error


def _is_plain(value: object) -> bool:
    return isinstance(value, (int, float, complex, str, bool, list, tuple))
