"""Planning of a region as kernels: their computations, their inputs, and the memory of values.

region_plan     the classes of a plan straight_line   a function as calls of operators on numbered values
plan_region     from a function to its plan channel_order   the order of channels in a blocked value
convolution_algorithm   direct convolution or Winograd weight_storage  weight compression
group_key       keys of fusion groups kernel_decisions   decisions on single groups, in place of the rules
"""

from intarsia.native.graph.convolution_algorithm import ConvolutionAlgorithm, ConvolutionAlgorithms
from intarsia.native.graph.kernel_decisions import KernelDecision, KernelDecisions
from intarsia.native.graph.plan_region import PlanOptions, plan_region
from intarsia.native.graph.region_plan import KernelPlan, RegionPlan, RegionValue
from intarsia.native.graph.weight_storage import WeightStorage

__all__ = [
    "ConvolutionAlgorithm",
    "ConvolutionAlgorithms",
    "KernelDecision",
    "KernelDecisions",
    "KernelPlan",
    "PlanOptions",
    "RegionPlan",
    "RegionValue",
    "WeightStorage",
    "plan_region",
]
