"""Sketch rules for GPUs: blocks, virtual threads and threads (Ansor, section 4.1).

The rules show what they do to stages of this DAG, whose factors are float16:

A = PLACEHOLDER [64, 256]
S(i, j) = (A[i, j]+A[i, j])
B = PLACEHOLDER [256, 64]
C(i, j) += (float32(S[i, k])*float32(B[k, j]))
"""

from intarsia.autoschedule.sketch.gpu.gpu_rules import GPU_RULES, GPU_STRUCTURE

__all__ = ["GPU_RULES", "GPU_STRUCTURE"]
