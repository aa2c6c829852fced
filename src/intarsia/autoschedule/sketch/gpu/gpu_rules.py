"""The sketch rules for GPUs, in order."""

from __future__ import annotations

from typing import Final

from intarsia.autoschedule.sketch.gpu.add_register_cache import AddRegisterCache
from intarsia.autoschedule.sketch.gpu.add_shared_read import AddSharedRead
from intarsia.autoschedule.sketch.gpu.cross_thread_reduction import CrossThreadReduction
from intarsia.autoschedule.sketch.gpu.inline_elementwise import InlineElementwise
from intarsia.autoschedule.sketch.gpu.tensor_core_tiling import TensorCoreTiling
from intarsia.autoschedule.sketch.gpu.thread_tiling import ThreadTiling
from intarsia.autoschedule.sketch.sketch_rule import SketchRule
from intarsia.autoschedule.sketch.skip_stage import SkipStage

GPU_STRUCTURE: Final = "SSSRRSRS"
"""Levels of tiles: blocks, virtual threads, threads, then those of a thread (Ansor's for GPUs)."""
GPU_RULES: Final[tuple[SketchRule, ...]] = (
    TensorCoreTiling(),
    AddSharedRead(),
    InlineElementwise(),
    CrossThreadReduction(),
    AddRegisterCache(),
    ThreadTiling(),
    SkipStage(),
)
"""The rules for GPUs, in the order in which they are tried."""
