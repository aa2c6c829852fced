"""Parameters of kernels and packings of constants as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from intarsia.ir import DType
from intarsia.native.llvm.array_parameter import ArrayParameter

if TYPE_CHECKING:
    from intarsia.native.dag.packing import Packing


def dtype_text(dtype: np.dtype[Any]) -> str:
    """The name of an element type."""
    return DType.of(np.empty(0, dtype)).value


def parameter_record(parameter: ArrayParameter) -> list[Any]:
    """A parameter as JSON."""
    shape, dtype = list(parameter.shape), dtype_text(parameter.dtype)
    return [parameter.name, shape, dtype, parameter.is_written, parameter.alignment]


def parameter_of(record: Sequence[Any]) -> ArrayParameter:
    """The parameter of a record."""
    name, shape, dtype, is_written, alignment = record
    return ArrayParameter(name, tuple(shape), DType(dtype).numpy, is_written, alignment)


def packing_record(packing: Packing) -> list[Any]:
    """A packing as JSON."""
    parts = [[part.axis, part.extent] for part in packing.parts]
    return [packing.tensor_name, list(packing.shape), parts]


def packing_of(record: Sequence[Any]) -> Packing:
    """The packing of a record."""
    from intarsia.native.dag.packing import Packing, Part

    name, original, parts = record
    return Packing(name, tuple(original), tuple(Part(axis, extent) for axis, extent in parts))
