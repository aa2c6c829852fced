"""DLPack for element types that NumPy does not exchange: bfloat16.

NumPy's own DLPack covers everything else. A capsule (DLPack 0.8, `DLManagedTensor`) begins with a `DLTensor`,
whose fields are read and written here; memory management stays with the producer of the capsule.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_CPU: Final = 1
"""kDLCPU."""

_BFLOAT: Final = 4
"""kDLBfloat."""

_BITS: Final = 16
_NAME: Final = b"dltensor"


class _DLTensor(ctypes.Structure):
    """`DLTensor` of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Memory:
    """Memory of a capsule as an object that NumPy makes an array of; it keeps the capsule alive."""

    def __init__(self, capsule: object, tensor: _DLTensor) -> None:
        self._capsule = capsule
        shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
        size = _BITS // 8
        strides = (
            tuple(tensor.strides[axis] * size for axis in range(tensor.ndim)) if tensor.strides else None
        )
        self.__array_interface__ = {
            "version": 3,
            "typestr": "<u2",
            "shape": shape,
            "strides": strides,
            "data": ((tensor.data or 0) + tensor.byte_offset, False),
        }


class DlpackArray:
    """An array that other libraries take by DLPack, whatever its element type.

    Args:
        array: The array; its memory is shared.
    """

    def __init__(self, array: Array) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device: the CPU."""
        return _CPU, 0

    def __dlpack__(self, **_: Any) -> Any:
        """Return a capsule."""
        if self._array.dtype.name != "bfloat16":
            return self._array.__dlpack__()
        capsule = self._array.view(np.uint16).__dlpack__()
        _tensor_of(capsule).code = _BFLOAT
        return capsule


def to_dlpack(array: Array) -> DlpackArray:
    """Return a result for `torch.from_dlpack` and other consumers, without a copy.

    NumPy arrays have `__dlpack__` as well, except those of bfloat16.
    """
    return DlpackArray(array)


def bfloat16_from_dlpack(value: Any) -> Array | None:
    """Return an array over the memory of a bfloat16 tensor in CPU memory; None for other element types.

    Args:
        value: Object with `__dlpack__`; what that raises propagates.
    """
    capsule = value.__dlpack__()
    tensor = _tensor_of(capsule)
    if (tensor.code, tensor.bits, tensor.lanes, tensor.device_type) != (_BFLOAT, _BITS, 1, _CPU):
        return None
    import ml_dtypes

    array: Array = np.asarray(_Memory(capsule, tensor)).view(ml_dtypes.bfloat16)
    return array


def _tensor_of(capsule: object) -> _DLTensor:
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return ctypes.cast(pointer_of(capsule, _NAME), ctypes.POINTER(_DLTensor)).contents
