from __future__ import annotations

import ml_dtypes
import numpy as np
from numpy.dtypes import StringDType
from tests.each_case import each_case

from intarsia.measure.element_kind import ElementKind, element_kind

EXPECTED = {
    ElementKind.FLOAT: [
        "float16", "float32", "float64", "longdouble", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz",
        "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float4_e2m1fn",
    ],
    ElementKind.COMPLEX: ["complex64", "complex128"],
    ElementKind.INTEGER: [
        "bool", "int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8", "uint64",
    ],
    ElementKind.TEXT: ["str", "bytes", "object"],
    ElementKind.OTHER: ["datetime64[s]", "timedelta64[D]", "V4"],
}  # fmt: skip


@each_case(("kind", "name"), [(kind, name) for kind, names in EXPECTED.items() for name in names])
def test_kinds(kind: ElementKind, name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    assert element_kind(dtype) is kind
    assert element_kind(dtype.name) is kind


def test_kinds_with_sizes_and_byte_orders() -> None:
    assert element_kind(np.dtype("<U7")) is ElementKind.TEXT
    assert element_kind(np.dtype("S7")) is ElementKind.TEXT
    assert element_kind(StringDType()) is ElementKind.TEXT
    assert element_kind(np.dtype(">f4")) is ElementKind.FLOAT
    assert element_kind(np.dtype([("a", "f4")])) is ElementKind.OTHER
