"""Every registered pass, with options where it needs some: what the tests of all passes run over."""

from __future__ import annotations

from tests.mock_cost_estimator import MockCostEstimator

from intarsia import passes
from intarsia.collage import collage_partition
from intarsia.collage.costs.cost_estimator import COST_ESTIMATORS
from intarsia.ir.pattern import is_constant, is_op, wildcard
from intarsia.native import tir
from intarsia.op.pattern_table import CompositePattern, register_pattern_table
from intarsia.transform import Pass, get_pass, pass_names
from intarsia.tune.quantise import calibrate_quantization, smooth_activations

register_pattern_table(
    "acme",
    [
        CompositePattern("conv_relu", is_op("Relu")(is_op("Conv")(wildcard(), is_constant(), ...))),
        CompositePattern("neg_relu", is_op("Relu")(is_op("Neg")(wildcard()))),
        CompositePattern("add_mul", is_op("Mul")(is_op("Add")(wildcard(), wildcard()), wildcard())),
    ],
)

COST_ESTIMATORS.register("mock", MockCostEstimator({"onnxruntime": 1e-5, "reference": 1e-3}))

WITH_OPTIONS: dict[str, tuple[dict[str, object], ...]] = {
    "AnnotateTarget": ({"toolchains": ("onnxruntime",)}, {"toolchains": ("openvino", "onnxruntime")}),
    "BindDims": ({"sizes": ("batch=2",)},),
    "CalibrateQuantization": ({"record": '{"0":[-25.5,102.0]}'},),
    "CollagePartition": (
        {"targets": ("onnxruntime",), "estimator": "mock"},
        {"targets": ("reference",), "estimator": "mock"},
    ),
    "MergeComposite": ({"toolchain": "acme"},),
    "PartitionWhole": ({"target": "cpu -toolchain=onnxruntime"},),
    "PrintIR": ({"header": "shown"},),
    "SpecializeSizes": ({"sizes": ("batch=2",), "target": "cpu -toolchain=onnxruntime"},),
    "SpecializeCache": ({"target": "cpu -toolchain=onnxruntime"},),
    "CombineParallelConv2D": ({}, {"min_num_branches": 2}),
    "CombineParallelMatMul": ({}, {"min_num_branches": 2}),
    "ConvertLayout": ({}, {"layout": "NHWC"}),
    "ToMixedPrecision": ({}, {"dtype": "bfloat16"}),
    "FuseOps": ({}, {"max_depth": 2}),
}
"""Options to run a pass with; one that is not here runs with its defaults."""


def instances(name: str) -> list[Pass]:
    """The pass with each of its options."""
    return [get_pass(name, **options) for options in WITH_OPTIONS.get(name, ({},))]


def every_pass() -> list[Pass]:
    """All passes of `intarsia.passes`, and those of other layers, by name."""
    homes = (passes, collage_partition, calibrate_quantization, smooth_activations)
    names = (name for name in pass_names() if any(hasattr(home, name) for home in homes))
    return [item for name in names for item in instances(name)]


def every_loop_pass() -> list[Pass]:
    """All passes on loop functions, by name."""
    names = (name for name in pass_names() if hasattr(tir, name))
    return [item for name in names for item in instances(name)]
