"""Weights of matrix products kept in fewer bytes than they are computed with.

A product of few rows waits for its weights: each is read once for a handful of multiplications. So half of
the bytes take half of the time. Arithmetic is float32: a stage brings each weight to it as it is read, and a
scheduler inlines that stage into the product. Products of more rows keep float32, as convolutions do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import DType
from intarsia.native.graph.kernel_dag import Source
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import Step
from intarsia.native.te import Tensor, compute, placeholder

_MOST_ROWS: Final = 8
"""With so many reading matrices that are in no cache still takes most of the time."""
_LEAST_BYTES: Final = 1 << 20
"""Smaller matrices stay in a cache from one run to the next."""
_STEPS: Final = 127
"""Of an int8 on either side of zero."""


class WeightStorage(Enum):
    """In which type weights are stored that a product waits for."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    INT8 = "int8"

    @property
    def dtype(self) -> DType:
        """The element type in memory."""
        return _DTYPES[self]

    @property
    def relative_error(self) -> float:
        """How much a stored weight is off at most, by the largest one of its output channel."""
        return _ERRORS[self]


_DTYPES: Final = {
    WeightStorage.F32: DType.FLOAT32,
    WeightStorage.F16: DType.FLOAT16,
    WeightStorage.BF16: DType.BFLOAT16,
    WeightStorage.INT8: DType.INT8,
}
_ERRORS: Final = {
    WeightStorage.F32: 0.0,
    WeightStorage.F16: 2.0**-11,
    WeightStorage.BF16: 2.0**-8,
    WeightStorage.INT8: 0.501 / _STEPS,  # half a step, and what scales lose in float32
}
_RANGES: Final = {
    WeightStorage.F32: (0.0, np.inf),
    WeightStorage.F16: (2.0**-14, 65504.0),
    WeightStorage.BF16: (2.0**-126, 3.38e38),
    WeightStorage.INT8: (2.0**-110, np.inf),
}
"""Between which sizes the largest weight of a channel must be for the error to be so small."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredWeight:
    """A matrix in fewer bytes.

    Attributes:
        array: Its elements.
        scale: By output channel, what they are multiplied with; None if they are what they stand for.
        channel: The axis of the output channels.
    """

    array: Array
    scale: Array | None
    channel: int


def stored_weight(weight: Array, storage: WeightStorage, channel: int) -> StoredWeight | None:
    """A float32 matrix as it is stored; None if the type cannot hold its numbers as exactly as it should.

    Integers are symmetric around zero, with a scale for each output channel: the largest of it is 127 steps.

    Args:
        weight: The matrix.
        storage: In which type.
        channel: The axis of the output channels.
    """
    sizes = np.abs(weight).max(axis=1 - channel)
    least, most = _RANGES[storage]
    is_held = np.isfinite(sizes) & (sizes <= most) & ((sizes >= least) | (sizes == 0))
    if not is_held.all():
        return None
    if storage is not WeightStorage.INT8:
        return StoredWeight(weight.astype(storage.dtype.numpy), None, channel)
    scale = np.maximum(sizes / np.float32(_STEPS), np.finfo(np.float32).tiny)
    steps = weight / np.expand_dims(scale, 1 - channel)
    return StoredWeight(np.rint(steps, out=steps).clip(-_STEPS, _STEPS).astype(np.int8), scale, channel)


@dataclass(eq=False)
class WeightStore:
    """The weights that were stored so far, each once.

    Attributes:
        storage: In which type.
    """

    storage: WeightStorage = WeightStorage.F32
    _stored: dict[int, StoredWeight | None] = field(default_factory=dict)

    def declared(
        self, steps: Sequence[Step], values: Sequence[RegionValue]
    ) -> tuple[dict[int, Tensor], dict[Tensor, Source]]:
        """The weights of a group that are stored in fewer bytes, as float32, and what is read for them.

        Args:
            steps: Of the group.
            values: All values.
        """
        found: dict[int, Tensor] = {}
        sources: dict[Tensor, Source] = {}
        for step in steps if self.storage is not WeightStorage.F32 else ():
            number = step.args[1] if len(step.args) > 1 else None
            if number is None or number in found or not _waits(step, values):
                continue
            if number not in self._stored:
                weight = values[number].constant
                assert weight is not None, "only constants are waited for"
                self._stored[number] = stored_weight(weight, self.storage, _channel(step))
            stored = self._stored[number]
            if stored is not None:
                found[number] = _widened(stored, f"s{len(found)}", sources)
        return found, sources


def _waits(step: Step, values: Sequence[RegionValue]) -> bool:
    """Whether a step is a product that waits for a constant float32 matrix."""
    number = step.args[1] if len(step.args) > 1 else None
    if str(step.op) not in {"MatMul", "Gemm"} or number is None or values[number].constant is None:
        return False
    type_ = values[number].type
    is_large = type_.dtype is DType.FLOAT32 and values[number].size_bytes >= _LEAST_BYTES
    rows = prod(values[step.outputs[0]].type.static_shape[:-1])
    return is_large and len(type_.static_shape) == 2 and rows <= _MOST_ROWS


def _channel(step: Step) -> int:
    return 0 if step.call.attrs.get("transB") else 1


def _widened(stored: StoredWeight, name: str, sources: dict[Tensor, Source]) -> Tensor:
    """The matrix as float32; what it is made from is noted among the sources."""
    narrow = _placeholder(stored.array, name, sources)
    if stored.scale is None:
        return compute(narrow.shape, lambda i, j: narrow[i, j].astype(DType.FLOAT32), f"{name}.wide")
    scale, channel = _placeholder(stored.scale, f"{name}.scale", sources), stored.channel
    return compute(
        narrow.shape,
        lambda *at: narrow[at].astype(DType.FLOAT32) * scale[at[channel]],
        f"{name}.wide",
    )


def _placeholder(array: Array, name: str, sources: dict[Tensor, Source]) -> Tensor:
    made = placeholder(array.shape, DType.of(array), name, {"constant": 1})
    sources[made] = Source(-1, array=array)
    return made
