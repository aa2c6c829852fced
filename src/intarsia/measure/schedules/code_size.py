"""Predict the code size of a loop function before code is generated."""

from __future__ import annotations

from dataclasses import replace

from intarsia.ir import IRModule, PrimFunc
from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import For, ForKind, Store
from intarsia.native.tir.unroll_loop import UNROLL_LOOP, UnrollLoop
from intarsia.transform import PassContext


def stores_when_unrolled(module: IRModule, name: str, context: PassContext | None = None) -> int:
    """Return the number of stores that a loop function has after `UnrollLoop`, without unrolling its loops.

    Args:
        module: Module that holds the function.
        name: Name of the function.
        context: Context of `UnrollLoop`, with its options; default: that of this thread.
    """
    context = PassContext.current() if context is None else context
    marking = replace(context.option(UNROLL_LOOP), explicit_unroll=False)
    context = PassContext(config={UNROLL_LOOP.key: marking})
    return _stores(UnrollLoop()(module, context).prim_func(name))


def _stores(function: PrimFunc) -> int:
    """Count the stores; a store in loops marked as unrolled counts once for each iteration."""
    count, copies = 0, [1]
    for visit in walk(function.body):
        match visit.event, visit.statement:
            case Event.ENTER, Store():
                count += copies[-1]
            case Event.ENTER, For(kind=ForKind.UNROLLED, extent=extent):
                copies.append(copies[-1] * extent)
            case Event.LEAVE, For(kind=ForKind.UNROLLED):
                copies.pop()
            case _:
                pass
    return count
