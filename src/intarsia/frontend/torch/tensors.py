"""Tensors of PyTorch in CPU memory and NumPy arrays over the same memory."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt
import torch

from intarsia.support.aligned_memory import aligned_array, aligned_copy

Array = npt.NDArray[Any]

_NARROW: Final = {
    torch.bfloat16: (torch.uint16, np.dtype(ml_dtypes.bfloat16)),
    torch.float8_e4m3fn: (torch.uint8, np.dtype(ml_dtypes.float8_e4m3fn)),
    torch.float8_e4m3fnuz: (torch.uint8, np.dtype(ml_dtypes.float8_e4m3fnuz)),
    torch.float8_e5m2: (torch.uint8, np.dtype(ml_dtypes.float8_e5m2)),
    torch.float8_e5m2fnuz: (torch.uint8, np.dtype(ml_dtypes.float8_e5m2fnuz)),
}
"""Types that torch does not hand to NumPy, with the integers of their size and ml_dtypes' type."""

_OF_NARROW: Final = {dtype: (np.dtype(f"u{dtype.itemsize}"), of) for of, (_, dtype) in _NARROW.items()}


def as_array(tensor: Any) -> Array:
    """Return a C-contiguous array over the memory of a tensor; a copy if the tensor is not contiguous.

    Args:
        tensor: Tensor in CPU memory.
    """
    plain = tensor.detach().contiguous()
    narrow = _NARROW.get(plain.dtype)
    if narrow is not None:
        integers, dtype = narrow
        return np.asarray(plain.view(integers).numpy().view(dtype))
    return np.asarray(plain.numpy(force=True))  # force resolves lazy negation and conjugation


def as_tensor(array: Array) -> Any:
    """Return a tensor over the memory of a writeable array."""
    narrow = _OF_NARROW.get(array.dtype)
    if narrow is not None:
        integers, dtype = narrow
        return torch.from_numpy(array.view(integers)).view(dtype)
    return torch.from_numpy(array)


def weight_array(tensor: Any, *, is_shared: bool) -> Array:
    """Return the array of a weight in aligned memory.

    Args:
        tensor: The weight.
        is_shared: Whether it may use the memory of the tensor. Otherwise it is copied once, so that later
            changes of the tensor do not reach it.
    """
    array = as_array(tensor)
    is_copy = array.size > 0 and array.ctypes.data != tensor.data_ptr()
    # A view, because its flags will change, and those of the tensor's array must not.
    return aligned_array(array.view()) if is_shared or is_copy else aligned_copy(array)
