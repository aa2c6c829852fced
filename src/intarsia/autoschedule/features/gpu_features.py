"""Features of the blocks and threads of a GPU around a store."""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.autoschedule.features.store_analysis import StoreAnalysis
from intarsia.ir.prim_func import ForKind

GPU_FEATURES: Final = (
    "is_gpu",
    *(f"{kind}_{axis}_len" for kind in ("blockIdx", "threadIdx") for axis in "xyz"),
    "vthread_len",
)
"""Names of the features: on a CPU 0, and lengths of 1. Grids and blocks have one dimension, so that y and z
are always 1."""
_NO_AXES: Final = (1.0, 1.0)


def gpu_features(store: StoreAnalysis) -> list[float]:
    """Return the features of `GPU_FEATURES` of a store, not yet on a logarithmic scale."""
    blocks, threads, virtual = (
        float(prod(loop.extent for loop in store.loops if loop.kind is kind))
        for kind in (ForKind.BLOCK, ForKind.THREAD, ForKind.VIRTUAL)
    )
    is_gpu = any(loop.kind in (ForKind.BLOCK, ForKind.THREAD) for loop in store.loops)
    return [float(is_gpu), blocks, *_NO_AXES, threads, *_NO_AXES, virtual]
