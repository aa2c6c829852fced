"""The order of a DAG's operations, which numbers the stages."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from intarsia.native.te.tensor import Operation, Tensor, operations


def default_order(tensors: Sequence[Tensor]) -> tuple[Operation, ...]:
    """Every operation that the tensors need, each after what it reads.

    The order that records of schedules rely on: from the results that nobody reads, taken in topological
    order, down along what is read, in the order of reading; an operation comes when all it reads is there.
    """
    found = _discovered(tensors)
    read = {tensor.op for op in found for tensor in op.inputs}
    results = [op for op in _topological(found) if op not in read]
    return tuple(operations(results))


def _discovered(tensors: Sequence[Tensor]) -> dict[Operation, int]:
    """The operations and when a search that always goes on with the last tensor seen meets them."""
    found: dict[Operation, int] = {}
    stack = [tensor.op for tensor in tensors]
    while stack:
        op = stack.pop()
        if op not in found:
            found[op] = len(found)
            stack.extend(tensor.op for tensor in op.inputs)
    return found


def _topological(found: dict[Operation, int]) -> list[Operation]:
    """Of the operations that are possible next, the one that was discovered last comes first."""
    by_number = list(found)
    waiting = [len({tensor.op for tensor in op.inputs}) for op in by_number]
    readers: list[list[int]] = [[] for _ in by_number]
    for number, op in enumerate(by_number):
        for producer in {tensor.op for tensor in op.inputs}:
            readers[found[producer]].append(number)
    possible = [-number for number, count in enumerate(waiting) if count == 0]
    heapq.heapify(possible)
    order = []
    while possible:
        number = -heapq.heappop(possible)
        order.append(by_number[number])
        for reader in readers[number]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heapq.heappush(possible, -reader)
    return order
