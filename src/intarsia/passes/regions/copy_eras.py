"""Which copies between devices come before and behind each expression."""

from __future__ import annotations

from collections.abc import Hashable

from intarsia.ir import Expr
from intarsia.op.device_call import is_device_copy
from intarsia.passes.regions.dataflow import Dataflow


def copy_eras(dataflow: Dataflow) -> dict[Expr, Hashable]:
    """For each open expression what tells apart when it can run, in a program of several devices.

    Those of one era need the same copies, and the same copies wait for them. A function that is made of
    expressions of one era neither waits for a copy that some of it does not need, nor keeps one waiting with
    what the copy does not need: devices work at the same time as if nothing had been put together.

    All are of one era in a program without copies. Takes n * c / 64 words for n expressions and c copies.
    """
    copies = [expr for expr in dataflow.nodes if is_device_copy(expr)]
    before = dict.fromkeys(dataflow.nodes, 0)
    behind = dict.fromkeys(dataflow.nodes, 0)
    if not copies:
        return dict(before)
    bits = {expr: 1 << number for number, expr in enumerate(copies)}
    for expr in dataflow.nodes:
        for need in dataflow.needs[expr]:
            before[expr] |= before[need] | bits.get(need, 0)
    for expr in reversed(dataflow.nodes):
        for need in dataflow.needs[expr]:
            behind[need] |= behind[expr] | bits.get(expr, 0)
    return {expr: (before[expr], behind[expr]) for expr in dataflow.nodes}
