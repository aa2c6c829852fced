"""Operations that follow another one element by element, as a function of its elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from intarsia.ir.loop_walk import inner_scalars
from intarsia.ir.prim_func import Buffer, Intrinsic, Load, Scalar
from intarsia.native.dag import AccessAnalyzer, ComputeDAG
from intarsia.native.te import ComputeOp, Operation, Tensor
from intarsia.native.tir.rewriting import Replacement

_MOST_PARTS: Final = 10
"""Maximum number of scalars of an element that is computed again for each row of a result."""


def plain_op(op: Operation) -> ComputeOp | None:
    """Return an operation that computes each element of its only result by itself, else None."""
    is_plain = isinstance(op, ComputeOp) and op.combiner is None and len(op.buffers) == 1
    return op if isinstance(op, ComputeOp) and is_plain else None


def chain_after(dag: ComputeDAG, op: ComputeOp) -> list[ComputeOp]:
    """Return a product and the operations that follow it, each of which alone reads the one before."""
    analyzer = AccessAnalyzer(dag)
    chain = [op]
    while not dag.is_output(chain[-1]) and len(dag.readers[chain[-1]]) == 1:
        reader = plain_op(dag.readers[chain[-1]][0])
        if reader is None or reader.shape != op.shape:
            break
        if not analyzer.elementwise_match(chain[-1], reader):
            break
        chain.append(reader)
    return chain


def value_of_chain(dag: ComputeDAG, chain: Sequence[ComputeOp]) -> tuple[Scalar, list[Tensor]]:
    """Return the last value of a chain as a function of the first one's sums, and what else it reads."""
    sums = chain[0].buffers[0]
    within = _computed_with(dag, chain[1:])
    value: Scalar = Load(sums, tuple(axis.var for axis in chain[0].axes))
    if len(chain) > 1:
        value = inlined(chain[-1].bodies[0], {op.buffers[0]: op for op in within})
    producers = {tensor.buffer: tensor for op in within for tensor in op.inputs}
    read = dict.fromkeys(part.buffer for part in inner_scalars(value) if isinstance(part, Load))
    return value, [producers[buffer] for buffer in read if buffer != sums]


def _computed_with(dag: ComputeDAG, chain: Sequence[ComputeOp]) -> list[ComputeOp]:
    """Return the operations of a chain, and cheap ones that nothing else reads, such as a widened bias."""
    within = list(chain)
    for op in map(plain_op, reversed(dag.ops)):
        if op is None or op in within or dag.is_output(op):
            continue
        parts = inner_scalars(op.bodies[0])
        is_cheap = len(parts) <= _MOST_PARTS and not any(isinstance(part, Intrinsic) for part in parts)
        readers = dag.readers[op]
        if is_cheap and readers and all(reader in within for reader in readers):
            within.append(op)
    return within


def inlined(scalar: Scalar, ops: Mapping[Buffer, ComputeOp]) -> Scalar:
    """Return a scalar with the bodies of operations in place of their elements."""
    replaced: dict[Scalar, Scalar] = {}
    for part in inner_scalars(scalar):
        if isinstance(part, Load) and part.buffer in ops:
            op = ops[part.buffer]
            at = dict(zip((axis.var for axis in op.axes), part.indices, strict=True))
            replaced[part] = inlined(Replacement(counters=at).scalar(op.bodies[0]), ops)
    return Replacement(scalars=replaced).scalar(scalar) if replaced else scalar
