"""Element types of tensors, named as NumPy and ml_dtypes name them."""

from __future__ import annotations

from enum import StrEnum
from functools import cache

import numpy as np
import numpy.typing as npt

from intarsia.support.errors import UsageError


class DType(StrEnum):
    """An element type; its value is the NumPy or ml_dtypes name, so `DType("float32") == "float32"`."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT8_E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8_E8M0FNU = "float8_e8m0fnu"
    FLOAT4_E2M1FN = "float4_e2m1fn"
    INT64 = "int64"
    INT32 = "int32"
    INT16 = "int16"
    INT8 = "int8"
    INT4 = "int4"
    INT2 = "int2"
    UINT64 = "uint64"
    UINT32 = "uint32"
    UINT16 = "uint16"
    UINT8 = "uint8"
    UINT4 = "uint4"
    UINT2 = "uint2"
    BOOL = "bool"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"
    STRING = "string"

    @property
    def is_float(self) -> bool:
        """Whether it holds real numbers with an exponent, of any width."""
        return self.value.startswith(("float", "bfloat"))

    @property
    def is_integer(self) -> bool:
        """Whether it holds signed or unsigned integers (bool is none)."""
        return self.value.startswith(("int", "uint"))

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype of arrays of this type; strings are object arrays of str."""
        return _numpy_dtype(self)

    @classmethod
    def of(cls, array: npt.NDArray[np.generic]) -> DType:
        """The element type of an array.

        Raises:
            ValueError: The array's dtype is none of the language's (dates, structures).
        """
        return _dtype_of(array.dtype)


@cache
def _numpy_dtype(dtype: DType) -> np.dtype[np.generic]:
    if dtype is DType.STRING:
        return np.dtype(object)
    try:
        return np.dtype(dtype.value)
    except TypeError:
        try:
            import ml_dtypes
        except ModuleNotFoundError:  # intarsia-runtime needs NumPy only
            raise UsageError(
                f"the element type {dtype.value} needs the package ml_dtypes, which is not installed",
                help="pip install 'intarsia-runtime[narrow]'",
            ) from None
        scalar: type[np.generic] = getattr(ml_dtypes, dtype.value)
        return np.dtype(scalar)


@cache
def _dtype_of(dtype: np.dtype[np.generic]) -> DType:
    if dtype.kind in "OUST":
        return DType.STRING
    return DType(dtype.name)
