"""Weight compression: weights of matrix products stored in fewer bytes than float32.

A product of few rows is memory-bound: each weight is read for a handful of multiplications. So half of the
bytes
take half of the time. Arithmetic stays float32: a stage converts each weight when it is read, and a scheduler
inlines that stage into the product. Products of more rows keep float32, as convolutions do.
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
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.machine.relative_costs import REFERENCE_COSTS, RelativeCosts
from intarsia.native.te import Tensor, compute, placeholder
from intarsia.target.cache_sizes import CacheSizes

_MOST_ROWS: Final = 8
"""Maximum number of rows at which loading an uncached matrix takes most of the time (Zen 3, AVX2)."""
_SECOND_CACHES: Final = 2
"""Number of second-level caches that a matrix must exceed; smaller ones stay in a cache between runs."""
_STEPS: Final = 127
"""Number of int8 steps on either side of zero."""


class WeightStorage(Enum):
    """Storage type of the weights of memory-bound matrix products."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    INT8 = "int8"

    @property
    def dtype(self) -> DType:
        """Element type in memory."""
        return _DTYPES[self]

    @property
    def relative_error(self) -> float:
        """Maximum error of a stored weight, relative to the largest weight of its output channel."""
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
    WeightStorage.INT8: 0.501 / _STEPS,  # half a step, plus the rounding of scales to float32
}
_RANGES: Final = {
    WeightStorage.F32: (0.0, np.inf),
    WeightStorage.F16: (2.0**-14, 65504.0),
    WeightStorage.BF16: (2.0**-126, 3.38e38),
    WeightStorage.INT8: (2.0**-110, np.inf),
}
"""Range of a channel's largest weight in which `_ERRORS` holds: the normal numbers of each type."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredWeight:
    """A compressed weight matrix.

    Attributes:
        array: Stored elements.
        scale: Scale factor of each output channel; None if the elements are the weights.
        channel: Axis of the output channels.
    """

    array: Array
    scale: Array | None
    channel: int


def stored_weight(weight: Array, storage: WeightStorage, channel: int) -> StoredWeight | None:
    """Compress a float32 matrix; None if the type cannot represent it with the accuracy of `relative_error`.

    int8 is symmetric around zero, with a scale for each output channel, whose largest weight is 127 steps.

    Args:
        weight: Float32 matrix.
        storage: Storage type.
        channel: Axis of the output channels.
    """
    sizes = np.abs(weight).max(axis=1 - channel)
    least, most = _RANGES[storage]
    is_held = np.isfinite(sizes) & (sizes <= most) & ((sizes >= least) | (sizes == 0))
    if not is_held.all():
        return None
    if storage is not WeightStorage.INT8:
        return StoredWeight(weight.astype(storage.dtype.numpy), None, channel)
    # A channel of zeros would have scale 0; the smallest normal float32 avoids the division by it.
    scale = np.maximum(sizes / np.float32(_STEPS), np.finfo(np.float32).tiny)
    steps = weight / np.expand_dims(scale, 1 - channel)
    return StoredWeight(np.rint(steps, out=steps).clip(-_STEPS, _STEPS).astype(np.int8), scale, channel)


@dataclass(eq=False)
class WeightStore:
    """The weights compressed so far, each once.

    Attributes:
        storage: Storage type.
        caches: Sizes of a core's caches.
        costs: Costs of the machine.
    """

    storage: WeightStorage = WeightStorage.F32
    caches: CacheSizes = field(default_factory=CacheSizes)
    costs: RelativeCosts = REFERENCE_COSTS
    _stored: dict[int, StoredWeight | None] = field(default_factory=dict)

    def declared(
        self, steps: Sequence[KernelStep], values: Sequence[RegionValue]
    ) -> tuple[dict[int, Tensor], dict[Tensor, Source]]:
        """Return the compressed weights of a group as float32 tensors by number, and their sources.

        Args:
            steps: Steps of the group.
            values: Values of the region.
        """
        weights: dict[int, Tensor] = {}
        sources: dict[Tensor, Source] = {}
        for step in steps if self.storage is not WeightStorage.F32 else ():
            number = step.args[1] if len(step.args) > 1 else None
            if number is None or number in weights or not self._is_memory_bound(step, values):
                continue
            if number not in self._stored:
                weight = values[number].constant
                assert weight is not None, "only constants are waited for"
                self._stored[number] = stored_weight(weight, self.storage, _channel(step))
            stored = self._stored[number]
            if stored is not None:
                weights[number] = _widened(stored, f"s{len(weights)}", sources)
        return weights, sources

    def _is_memory_bound(self, step: KernelStep, values: Sequence[RegionValue]) -> bool:
        """Return whether a step is a memory-bound product by a constant float32 matrix."""
        number = step.args[1] if len(step.args) > 1 else None
        if str(step.op) not in {"MatMul", "Gemm"} or number is None or values[number].constant is None:
            return False
        type_, least = values[number].type, _SECOND_CACHES * self.caches.second
        is_large = type_.dtype is DType.FLOAT32 and values[number].size_bytes >= least
        rows = prod(values[step.outputs[0]].type.static_shape[:-1])
        return is_large and len(type_.static_shape) == 2 and rows <= _MOST_ROWS * self.costs.memory


def _channel(step: KernelStep) -> int:
    return 0 if step.call.attrs.get("transB") else 1


def _widened(stored: StoredWeight, name: str, sources: dict[Tensor, Source]) -> Tensor:
    """Return the matrix converted to float32, and add its placeholders to the sources."""
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
    tensor = placeholder(array.shape, DType.of(array), name, {"constant": 1})
    sources[tensor] = Source(-1, array=array)
    return tensor
