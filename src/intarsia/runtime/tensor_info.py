"""Reading a TensorInfo: what its texts and numbers mean for arrays."""

from __future__ import annotations

from intarsia.ir.dtype import DType
from intarsia.runtime.plan import TensorInfo

_NAMES = frozenset(dtype.value for dtype in DType)


def is_tensor(info: TensorInfo) -> bool:
    """Whether it describes an array; sequences and optionals have the text of their type as `dtype`."""
    return info.dtype in _NAMES


def static_shape(info: TensorInfo) -> tuple[int, ...] | None:
    """The shape if every dimension is known, else None."""
    if info.shape is None or not is_tensor(info):
        return None
    known = tuple(dim for dim in info.shape if isinstance(dim, int) and dim >= 0)
    return known if len(known) == len(info.shape) else None


def shape_text(shape: tuple[int | str, ...] | None) -> str:
    """A shape for people: (batch, 3, ?); "any shape" if not even the rank is known."""
    if shape is None:
        return "any shape"
    dims = ["?" if dim in {-1, "?"} else str(dim) for dim in shape]
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def info_text(info: TensorInfo) -> str:
    """Name, element type and shape in one line: data: float32 (1, 3, 224, 224)."""
    shape = f" {shape_text(info.shape)}" if is_tensor(info) else ""
    return f"{info.name}: {info.dtype}{shape}"
