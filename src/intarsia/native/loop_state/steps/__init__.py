"""The steps of a history, one kind per file; each applies to a state and prints itself as Python.

Their docstrings show states before and after the last of some steps, for this DAG:

A = PLACEHOLDER [8, 6]
B(i, j) = (A[i, j]*2f)
C(i) += B[i, k]
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from intarsia.native.loop_state.steps.annotation_step import AnnotationStep
from intarsia.native.loop_state.steps.cache_read_step import CacheReadStep
from intarsia.native.loop_state.steps.cache_write_step import CacheWriteStep
from intarsia.native.loop_state.steps.compute_at_step import ComputeAtStep
from intarsia.native.loop_state.steps.compute_inline_step import ComputeInlineStep
from intarsia.native.loop_state.steps.compute_root_step import ComputeRootStep
from intarsia.native.loop_state.steps.follow_fused_split_step import FollowFusedSplitStep
from intarsia.native.loop_state.steps.follow_split_step import FollowSplitStep
from intarsia.native.loop_state.steps.fuse_step import FuseStep
from intarsia.native.loop_state.steps.pragma_step import PragmaStep
from intarsia.native.loop_state.steps.reorder_step import ReorderStep
from intarsia.native.loop_state.steps.rfactor_step import RfactorStep
from intarsia.native.loop_state.steps.split_step import SplitStep
from intarsia.native.loop_state.steps.step import TransformStep
from intarsia.native.loop_state.steps.storage_align_step import StorageAlignStep

STEPS: Final[Mapping[str, type[TransformStep]]] = MappingProxyType(
    {
        kind.code: kind
        for kind in (
            *(AnnotationStep, FuseStep, PragmaStep, ReorderStep),
            *(SplitStep, FollowSplitStep, FollowFusedSplitStep, StorageAlignStep),
            *(ComputeAtStep, ComputeInlineStep, ComputeRootStep),
            *(CacheReadStep, CacheWriteStep, RfactorStep),
        )
    }
)
"""Classes of steps by their code in the log."""

__all__ = [
    "STEPS",
    "AnnotationStep",
    "CacheReadStep",
    "CacheWriteStep",
    "ComputeAtStep",
    "ComputeInlineStep",
    "ComputeRootStep",
    "FollowFusedSplitStep",
    "FollowSplitStep",
    "FuseStep",
    "PragmaStep",
    "ReorderStep",
    "RfactorStep",
    "SplitStep",
    "StorageAlignStep",
    "TransformStep",
]
