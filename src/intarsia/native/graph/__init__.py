"""A region of the graph as kernels: what each computes, from which values, and where the values are.

region_plan     what a plan is
straight_line   a function as calls of operators on numbered values
plan_region     from a function to its plan
channel_order   where the channels of a blocked value lie
convolution_algorithm   how a convolution is computed
weight_storage  in which type weights are stored
"""

from intarsia.native.graph.convolution_algorithm import ConvolutionAlgorithm, ConvolutionAlgorithms
from intarsia.native.graph.plan_region import PlanOptions, plan_region
from intarsia.native.graph.region_plan import KernelPlan, RegionPlan, RegionValue
from intarsia.native.graph.weight_storage import WeightStorage

__all__ = [
    "ConvolutionAlgorithm",
    "ConvolutionAlgorithms",
    "KernelPlan",
    "PlanOptions",
    "RegionPlan",
    "RegionValue",
    "WeightStorage",
    "plan_region",
]
