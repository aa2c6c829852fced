"""Read a TensorInfo: its meaning for arrays."""

from __future__ import annotations

from intarsia.ir.dtype import DType
from intarsia.runtime.plan import TensorInfo

_NAMES = frozenset(dtype.value for dtype in DType)


def is_tensor(info: TensorInfo) -> bool:
    """Return whether it describes an array.

    Sequences and optionals have the text of their type as `dtype`.
    """
    return info.dtype in _NAMES


def static_shape(info: TensorInfo) -> tuple[int, ...] | None:
    """Return the shape if every dimension is known, else None."""
    if info.shape is None or not is_tensor(info):
        return None
    known = tuple(dim for dim in info.shape if isinstance(dim, int) and dim >= 0)
    return known if len(known) == len(info.shape) else None


def shape_text(shape: tuple[int | str, ...] | None) -> str:
    """Return a shape for messages: (batch, 3, ?); "any shape" if the rank is unknown."""
    if shape is None:
        return "any shape"
    dims = ["?" if dim in {-1, "?"} else str(dim) for dim in shape]
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def info_text(info: TensorInfo) -> str:
    """Return name, element type and shape in one line: data: float32 (1, 3, 224, 224)."""
    shape = f" {shape_text(info.shape)}" if is_tensor(info) else ""
    return f"{info.name}: {info.dtype}{shape}"
