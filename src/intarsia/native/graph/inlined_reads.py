"""How often an element of a result reads each argument when nothing on the way is kept."""

from __future__ import annotations

from collections import Counter

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Load
from intarsia.native.te import ComputeOp, Operation, PlaceholderOp, Tensor


def inlined_reads(result: Tensor) -> dict[str, int]:
    """By the name of a placeholder, how many loads of it the element has as one expression.

    Operations with reductions, and those that no expression declares, count as read once for each load.
    """
    order = _order(result.op)
    paths: Counter[Operation] = Counter({result.op: 1})
    for op in reversed(order):
        if isinstance(op, PlaceholderOp):
            continue
        loads = _loads(op)
        for tensor in op.inputs:
            paths[tensor.op] += paths[op] * max(1, loads[tensor.buffer.name])
    return {op.name: paths[op] for op in order if isinstance(op, PlaceholderOp)}


def _loads(op: Operation) -> Counter[str]:
    if not isinstance(op, ComputeOp):
        return Counter()
    scalars = (scalar for body in op.bodies for scalar, _ in scalar_post_order(body))
    return Counter(scalar.buffer.name for scalar in scalars if isinstance(scalar, Load))


def _order(root: Operation) -> list[Operation]:
    """What an operation needs, each after what it reads."""
    found: dict[Operation, None] = {}
    stack = [(root, False)]
    while stack:
        op, is_done = stack.pop()
        if is_done:
            found[op] = None
        elif op not in found:
            stack.append((op, True))
            stack.extend((tensor.op, False) for tensor in op.inputs if tensor.op not in found)
    return list(found)
