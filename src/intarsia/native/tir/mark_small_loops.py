"""MarkSmallLoops: the loops to unroll, marked before registers are allocated."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import IRModule, PrimFunc, with_prim_func_fields
from intarsia.native.tir.unroll_choice import marked_loops
from intarsia.native.tir.unroll_loop import unroll_limits
from intarsia.transform import PassContext, PrimFuncPass, register_pass


@register_pass
@dataclass(frozen=True)
class MarkSmallLoops(PrimFuncPass):
    """Marks the serial loops as `unrolled` that `UnrollLoop` takes without being marked.

    Sums over a tile stay in registers only if the loops over it are known to be unrolled: this pass comes
    before `RegisterPromotion`. Its limits are those of the config `tir.UnrollLoop`.

    Before:
        def prim @f(x: Buffer[(9, 2, 8), float32], y: Buffer[(2, 8), float32])
            attributes {auto_unroll_max_step=2} {
          for k in 9 {
            for i in 2 {
              for vectorized j in 8 {
                y[i, j] = y[i, j] + x[k, i, j];
              }
            }
          }
        }
    After:
        def prim @f(x: Buffer[(9, 2, 8), float32], y: Buffer[(2, 8), float32])
            attributes {auto_unroll_max_step=2} {
          for k in 9 {
            for unrolled i in 2 {
              for vectorized j in 8 {
                y[i, j] = y[i, j] + x[k, i, j];
              }
            }
          }
        }
    """

    def transform_prim_func(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        """Return the loop function with more loops marked."""
        body = marked_loops(function.body, unroll_limits(function, ctx))
        return with_prim_func_fields(function, body=body)
