"""A value in the memory of a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np


class CudaBlock:
    """Memory of a GPU, which is given back when nothing refers to it any more.

    Attributes:
        address: Address of its first byte.
    """

    __slots__ = ("__weakref__", "address")

    def __init__(self, address: int) -> None:
        self.address = address


@dataclass(frozen=True, slots=True, eq=False)
class CudaBuffer:
    """An array in the memory of a GPU, C-contiguous.

    Attributes:
        gpu: Number that identifies the opened GPU among those of this process (`CudaContext.identity`).
        address: Address of its first element.
        shape: Its shape.
        dtype: Its element type.
        block: Memory that it keeps.
    """

    gpu: int
    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    block: CudaBlock

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"a buffer of a GPU, {self.dtype}{list(self.shape)}"
