"""Loop functions: what they mean, and passes on them (DESIGN section 8).

interpret          runs a loop function (generated_python, scalar_math, thread_races, mma_site)
simplify           fewer operations (simplify_scalar, integer_rules, affine)
loop_partition     guards out of loops (loop_cuts)
vectorize_loop     vectorised loops innermost (accesses)
mark_small_loops   what will be unrolled, before registers are given out (unroll_choice)
register_promotion accumulators in registers (register_tile, accesses)
skip_padding       no products with padding
result_storage     rows that end in a result are computed there
storage_rewrite    shared scratch memory (buffer_lifetime)
unroll_loop        iterations written out (unroll_choice)
default_tir        all of these, in order
split_at_barriers  GPU kernels as loops of a CPU (plain_threads)
rewriting          taking statements apart and together again
"""

from intarsia.native.tir.default_tir import default_tir
from intarsia.native.tir.interpret import interpret
from intarsia.native.tir.loop_partition import LoopPartition
from intarsia.native.tir.mark_small_loops import MarkSmallLoops
from intarsia.native.tir.register_promotion import RegisterPromotion
from intarsia.native.tir.result_storage import ResultStorage
from intarsia.native.tir.simplify import Simplify
from intarsia.native.tir.skip_padding import SkipPadding
from intarsia.native.tir.split_at_barriers import SplitAtBarriers
from intarsia.native.tir.storage_rewrite import StorageRewrite
from intarsia.native.tir.unroll_loop import UnrollLoop, UnrollLoopConfig
from intarsia.native.tir.vectorize_loop import NOT_VECTORIZED, VectorizeLoop

__all__ = [
    "NOT_VECTORIZED",
    "LoopPartition",
    "MarkSmallLoops",
    "RegisterPromotion",
    "ResultStorage",
    "Simplify",
    "SkipPadding",
    "SplitAtBarriers",
    "StorageRewrite",
    "UnrollLoop",
    "UnrollLoopConfig",
    "VectorizeLoop",
    "default_tir",
    "interpret",
]
