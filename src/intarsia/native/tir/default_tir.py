"""The passes on loop functions in their order, by name."""

from __future__ import annotations

from intarsia.native.tir.loop_partition import LoopPartition
from intarsia.native.tir.mark_small_loops import MarkSmallLoops
from intarsia.native.tir.register_promotion import RegisterPromotion
from intarsia.native.tir.result_storage import ResultStorage
from intarsia.native.tir.simplify import Simplify
from intarsia.native.tir.skip_padding import SkipPadding
from intarsia.native.tir.storage_rewrite import StorageRewrite
from intarsia.native.tir.unroll_loop import UnrollLoop
from intarsia.native.tir.vectorize_loop import VectorizeLoop
from intarsia.transform import Sequential, register_pipeline


@register_pipeline("default_tir")
def default_tir(
    vector_bytes: int = 16,
    registers: int = 16,
    first_cache: int = 1 << 15,
    second_cache: int = 1 << 19,
    *,
    may_overlap: bool = False,
) -> Sequential:
    """Return the passes that a loop function takes between its schedule and the code generator.

    Guards leave the loops, vectorised loops become innermost, small loops are marked where a function has a
    hint for them, accumulators move into registers, rows that end in a result are computed there, and scratch
    memory is shared. The code generator writes out what is marked as unrolled: passes and the emitter's
    analyses would work on all copies.

    Args:
        vector_bytes: Size of a vector register of the machine, in bytes.
        registers: Number of vector registers of the machine.
        first_cache: Size of its first-level cache, in bytes.
        second_cache: Size of its second-level cache, in bytes.
        may_overlap: Whether elements of a result may be computed twice, as by tiles that overlap: then
            what is read again must not lie in the result.
    """
    storage = [] if may_overlap else [ResultStorage(vector_bytes, first_cache, second_cache)]
    return Sequential(
        [
            Simplify(),
            LoopPartition(),
            VectorizeLoop(),
            MarkSmallLoops(),
            RegisterPromotion(vector_bytes, registers),
            SkipPadding(),
            *storage,
            StorageRewrite(),
            UnrollLoop(is_written_out=False),
            Simplify(),
        ],
        name="default_tir",
    )
