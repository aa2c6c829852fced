"""Options of ONNX Runtime's targets, announced by entry points `intarsia.target_options`.

Without an option, ONNX Runtime does what it does by default. Left out are options with effects beyond the
session that has them: pinning of threads and flushing of denormals, which ONNX Runtime sets for threads that
sessions share, and caches on disk. So are options with which nothing was ever faster: memory patterns, and
parallel branches (another pool of threads).
"""

from __future__ import annotations

from typing import Final

from intarsia.target import TargetOption

_OWNER: Final = ("onnxruntime",)

GRAPH_LEVEL: Final = TargetOption(
    "graph_level",
    str,
    "which of its graph optimisations onnxruntime does, each with those before it",
    choices=("basic", "extended", "layout", "all"),
    toolchains=_OWNER,
    default="all",
)

SPINNING: Final = TargetOption(
    "spinning", bool, "whether threads wait busily within a run", toolchains=_OWNER, default=True
)

MEMORY_ARENA: Final = TargetOption(
    "memory_arena", bool, "whether memory is kept for later runs", toolchains=_OWNER, default=True
)

PREPACKING: Final = TargetOption(
    "prepacking", bool, "whether weights are packed when a session is made", toolchains=_OWNER, default=True
)

DYNAMIC_BLOCKS: Final = TargetOption(
    "dynamic_blocks",
    int,
    "pieces of decreasing size that the work of each thread is cut into; 0: of equal size",
    choices=(0, 4),
    toolchains=_OWNER,
    default=0,
)

PROVIDER: Final = TargetOption(
    "provider",
    str,
    "what runs onnxruntime's operators on GPUs: its CUDA kernels, or TensorRT and CUDA for what that lacks",
    choices=("cuda", "tensorrt"),
    toolchains=_OWNER,
    default="cuda",
    is_tuned=False,
)
"""On the CPU it has no effect."""
