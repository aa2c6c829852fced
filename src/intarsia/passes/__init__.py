"""Heuristic graph passes, one per file: `IRModule -> IRModule`, decided by rule (DESIGN section 1)."""

from intarsia.passes.annotate_quantization import AnnotateQuantization
from intarsia.passes.annotate_target import AnnotateTarget
from intarsia.passes.backward_fold_scale_axis import BackwardFoldScaleAxis
from intarsia.passes.bind_dims import BindDims, bind_sizes, name_dims
from intarsia.passes.cache_in_place import CacheInPlace
from intarsia.passes.canonicalize_ops import CanonicalizeOps
from intarsia.passes.capture_states import CaptureStates
from intarsia.passes.combine_parallel_conv2d import CombineParallelConv2D
from intarsia.passes.combine_parallel_matmul import CombineParallelMatMul
from intarsia.passes.convert_layout import ConvertLayout
from intarsia.passes.decompose_ml import DecomposeMl
from intarsia.passes.decompose_recurrent import DecomposeRecurrent
from intarsia.passes.decompose_swish import DecomposeSwish
from intarsia.passes.defuse_ops import DefuseOps
from intarsia.passes.eliminate_common_subexpr import EliminateCommonSubexpr
from intarsia.passes.eliminate_dead_code import EliminateDeadCode
from intarsia.passes.equalize_layers import EqualizeLayers
from intarsia.passes.fold_constant import FoldConstant
from intarsia.passes.fold_scale_axis import FoldScaleAxis
from intarsia.passes.forward_fold_scale_axis import ForwardFoldScaleAxis
from intarsia.passes.fuse_ops import FuseOps
from intarsia.passes.infer_type import InferType
from intarsia.passes.inline import Inline
from intarsia.passes.lambda_lift import LambdaLift
from intarsia.passes.merge_compiler_regions import MergeCompilerRegions
from intarsia.passes.merge_composite import MergeComposite
from intarsia.passes.outline_bodies import OutlineBodies
from intarsia.passes.partition_for import partition_for, partition_sequence
from intarsia.passes.partition_graph import PartitionGraph
from intarsia.passes.partition_whole import PartitionWhole, partition_whole
from intarsia.passes.pipelines import default_heuristic, experiment_heuristic
from intarsia.passes.plan_devices import PlanDevices
from intarsia.passes.plan_devices_lite import PlanDevicesLite
from intarsia.passes.print_ir import PrintIR
from intarsia.passes.realize_quantization import RealizeQuantization
from intarsia.passes.recurrent_to_scan import RecurrentToScan
from intarsia.passes.refine_states import RefineStates
from intarsia.passes.remove_unused_functions import RemoveUnusedFunctions
from intarsia.passes.select_branches import SelectBranches
from intarsia.passes.simplify_expr import SimplifyExpr
from intarsia.passes.simplify_inference import SimplifyInference
from intarsia.passes.specialize_cache import SpecializeCache
from intarsia.passes.specialize_sizes import SpecializeSizes
from intarsia.passes.to_a_normal_form import ToANormalForm
from intarsia.passes.to_graph_normal_form import ToGraphNormalForm
from intarsia.passes.to_mixed_precision import ToMixedPrecision
from intarsia.passes.unroll_loops import UnrollLoops

__all__ = [
    "AnnotateQuantization",
    "AnnotateTarget",
    "BackwardFoldScaleAxis",
    "BindDims",
    "CacheInPlace",
    "CanonicalizeOps",
    "CaptureStates",
    "CombineParallelConv2D",
    "CombineParallelMatMul",
    "ConvertLayout",
    "DecomposeMl",
    "DecomposeRecurrent",
    "DecomposeSwish",
    "DefuseOps",
    "EliminateCommonSubexpr",
    "EliminateDeadCode",
    "EqualizeLayers",
    "FoldConstant",
    "FoldScaleAxis",
    "ForwardFoldScaleAxis",
    "FuseOps",
    "InferType",
    "Inline",
    "LambdaLift",
    "MergeCompilerRegions",
    "MergeComposite",
    "OutlineBodies",
    "PartitionGraph",
    "PartitionWhole",
    "PlanDevices",
    "PlanDevicesLite",
    "PrintIR",
    "RealizeQuantization",
    "RecurrentToScan",
    "RefineStates",
    "RemoveUnusedFunctions",
    "SelectBranches",
    "SimplifyExpr",
    "SimplifyInference",
    "SpecializeCache",
    "SpecializeSizes",
    "ToANormalForm",
    "ToGraphNormalForm",
    "ToMixedPrecision",
    "UnrollLoops",
    "bind_sizes",
    "default_heuristic",
    "experiment_heuristic",
    "name_dims",
    "partition_for",
    "partition_sequence",
    "partition_whole",
]
