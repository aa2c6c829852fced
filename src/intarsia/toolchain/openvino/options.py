"""Options of OpenVINO's targets, announced by entry points `intarsia.target_options`.

Without an option, OpenVINO does what it does by default. Left out are options with effects beyond the model
that has them (pinning of threads, flushing of denormals, caches on disk), and throughput hints, with which
nothing was ever faster.
"""

from __future__ import annotations

from typing import Final

from intarsia.target import TargetOption

_OWNER: Final = ("openvino",)

CORE_TYPE: Final = TargetOption(
    "core_type",
    str,
    "on which cores OpenVINO runs, where they are of two kinds",
    choices=("any", "performance", "efficient"),
    toolchains=_OWNER,
    default="any",
)

HYPER_THREADING: Final = TargetOption(
    "hyper_threading", bool, "whether both threads of a core are used", toolchains=_OWNER, default=False
)

PARTITIONER: Final = TargetOption(
    "partitioner",
    str,
    "how OpenVINO divides loops among its threads",
    choices=("static", "auto"),
    toolchains=_OWNER,
    default="static",
)

INFERENCE_PRECISION: Final = TargetOption(
    "inference_precision",
    str,
    "the type in which float32 is multiplied, where the CPU has instructions for it",
    choices=("float32", "bfloat16", "float16"),
    toolchains=_OWNER,
    default="float32",
    keeps_results=False,
)
"""`TunePrecision` decides on it."""
