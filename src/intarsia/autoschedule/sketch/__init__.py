"""Sketches, loop structures without sizes, and the rules that generate them (Ansor, section 4.1).

The rules show what they do to a stage of this DAG, in which S lists its axis i as one of constant tensors:

A = PLACEHOLDER [8, 64]
S(i, j) = (A[i, j]*2f)
B = PLACEHOLDER [64, 8]
C(i, j) += (S[i, k]*B[k, j])
"""

from intarsia.autoschedule.sketch.custom_sketch_rule import CustomSketchRule
from intarsia.autoschedule.sketch.generate_sketches import CPU_RULES, generate_sketches
from intarsia.autoschedule.sketch.gpu import GPU_RULES
from intarsia.autoschedule.sketch.micro_kernel_sketch import MicroKernelSketch
from intarsia.autoschedule.sketch.sketch_rule import Condition, SketchContext, SketchRule

__all__ = [
    "CPU_RULES",
    "GPU_RULES",
    "Condition",
    "CustomSketchRule",
    "MicroKernelSketch",
    "SketchContext",
    "SketchRule",
    "generate_sketches",
]
