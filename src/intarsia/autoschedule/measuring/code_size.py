"""How much code a loop function comes to, before it is made."""

from __future__ import annotations

from dataclasses import replace

from intarsia.ir import IRModule, PrimFunc
from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import For, ForKind, Store
from intarsia.native.tir.unroll_loop import UNROLL_LOOP, UnrollLoop
from intarsia.transform import PassContext


def stores_when_unrolled(module: IRModule, name: str, context: PassContext | None = None) -> int:
    """How many stores a loop function has after `UnrollLoop`, which is not run: it would take its time.

    Args:
        module: Holds the function.
        name: Of the function.
        context: Context of `UnrollLoop`, with its options; default: that of this thread.
    """
    context = PassContext.current() if context is None else context
    marking = replace(context.option(UNROLL_LOOP), explicit_unroll=False)
    context = PassContext(config={UNROLL_LOOP.key: marking})
    return _stores(UnrollLoop()(module, context).prim_func(name))


def _stores(function: PrimFunc) -> int:
    """The stores, those in loops that are to be unrolled as often as they are written out."""
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
