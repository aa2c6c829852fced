"""The named sequences of heuristic passes (seed relax_pass_infra, D5)."""

from __future__ import annotations

from intarsia.passes.canonicalize_ops import CanonicalizeOps
from intarsia.passes.combine_parallel_conv2d import CombineParallelConv2D
from intarsia.passes.combine_parallel_matmul import CombineParallelMatMul
from intarsia.passes.eliminate_common_subexpr import EliminateCommonSubexpr
from intarsia.passes.eliminate_dead_code import EliminateDeadCode
from intarsia.passes.fold_constant import FoldConstant
from intarsia.passes.fold_scale_axis import FoldScaleAxis
from intarsia.passes.infer_type import InferType
from intarsia.passes.remove_unused_functions import RemoveUnusedFunctions
from intarsia.passes.simplify_expr import SimplifyExpr
from intarsia.passes.simplify_inference import SimplifyInference
from intarsia.transform import Sequential, register_pipeline


@register_pipeline("default_heuristic")
def default_heuristic() -> Sequential:
    """What helps every toolchain: fewer operators, constants folded, batch normalization in the weights."""
    return Sequential(
        [
            InferType(),
            SimplifyInference(),
            FoldConstant(),
            CanonicalizeOps(),
            SimplifyExpr(),
            FoldScaleAxis,
            SimplifyExpr(),
            EliminateCommonSubexpr().with_info(opt_level=2),
            FoldConstant(),
            EliminateDeadCode(),
            RemoveUnusedFunctions(),
        ]
    )


@register_pipeline("experiment_heuristic")
def experiment_heuristic() -> Sequential:
    """`default_heuristic`, then what pays on some machines only: parallel branches as one operator."""
    return Sequential(
        [
            default_heuristic(),
            CombineParallelConv2D().with_info(opt_level=2),
            CombineParallelMatMul().with_info(opt_level=2),
            FoldConstant(),
        ]
    )
