"""The order of a DAG's operations, which numbers the stages."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from intarsia.native.te.tensor import Operation, Tensor, operations


def default_order(tensors: Sequence[Tensor]) -> tuple[Operation, ...]:
    """Return every operation that the tensors need, each after its producers.

    Schedule records depend on this order: a depth-first post-order from the results without readers, these in
    topological order, along inputs in their order.
    """
    discovery = _discovered(tensors)
    read = {tensor.op for op in discovery for tensor in op.inputs}
    results = [op for op in _topological(discovery) if op not in read]
    return tuple(operations(results))


def _discovered(tensors: Sequence[Tensor]) -> dict[Operation, int]:
    """Return the operations with their numbers in a depth-first search that visits the last tensor first."""
    discovery: dict[Operation, int] = {}
    stack = [tensor.op for tensor in tensors]
    while stack:
        op = stack.pop()
        if op not in discovery:
            discovery[op] = len(discovery)
            stack.extend(tensor.op for tensor in op.inputs)
    return discovery


def _topological(discovery: dict[Operation, int]) -> list[Operation]:
    """Return a topological order in which the ready operation that was discovered last comes first."""
    by_number = list(discovery)
    missing_inputs = [len({tensor.op for tensor in op.inputs}) for op in by_number]
    readers: list[list[int]] = [[] for _ in by_number]
    for number, op in enumerate(by_number):
        for producer in {tensor.op for tensor in op.inputs}:
            readers[discovery[producer]].append(number)
    # A min-heap of negated numbers yields the ready operation with the highest number.
    ready = [-number for number, count in enumerate(missing_inputs) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        number = -heapq.heappop(ready)
        order.append(by_number[number])
        for reader in readers[number]:
            missing_inputs[reader] -= 1
            if missing_inputs[reader] == 0:
                heapq.heappush(ready, -reader)
    return order
