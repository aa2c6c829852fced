"""Element types that torch shares with ONNX and NumPy, and arrays as tensors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

from intarsia.runtime.kernel import Array
from intarsia.toolchain.torch.rule import Tensor, refusal

_TYPES: Final[dict[str, Any]] = {
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
    "bool": torch.bool,
    "uint8": torch.uint8,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
}


def torch_dtype(element_type: int) -> Any:
    """Torch's element type of an ONNX number, None if it has none."""
    from onnx import helper

    return _TYPES.get(np.dtype(helper.tensor_dtype_to_np_dtype(element_type)).name) if element_type else None


def torch_dtype_of(dtype: np.dtype[Any]) -> Any:
    """Torch's element type of a NumPy one.

    Raises:
        CompileError: It has none.
    """
    if dtype.name not in _TYPES:
        raise refusal(f"an array of {dtype}, which torch lacks")
    return _TYPES[dtype.name]


def numpy_dtype_of(torch_type: Any) -> np.dtype[Any]:
    """NumPy's element type of one of torch that ONNX has as well."""
    return np.dtype(next(name for name, known_type in _TYPES.items() if known_type == torch_type))


def as_tensor(array: Array) -> Tensor:
    """A tensor over the array's memory, or over a copy of it where the array may not be written.

    Raises:
        CompileError: torch lacks the element type.
    """
    torch_dtype_of(array.dtype)
    return torch.from_numpy(array if array.flags.writeable else array.copy())
