"""Attention in blocks of rows: results, blocks, what is kept in memory."""

from math import prod
from typing import NamedTuple

import numpy as np
import pytest
from tests.scheduled_kernels import Array, computed, loops_of, normal

from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import Allocate, For, ForKind
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.attention import attention_chain, attention_state
from intarsia.native.schedule.schedule_task import ScheduleTask

ISA = Isa.host()
FLOAT = 4


class Sizes(NamedTuple):
    """Of queries and keys; `left` is whether something is computed of the scores before the softmax."""

    batch: int
    heads: int
    queries: int
    keys: int
    size: int
    is_scaled: bool = True


def attention(sizes: Sizes) -> ComputeDAG:
    """The stages as the graph makes them, of queries, keys and values that lie head by head in rows."""
    b, h, s, t, d, is_scaled = sizes
    q = te.placeholder((b, s, h, d), name="q")
    k, v = (te.placeholder((b, t, h, d), name=name) for name in "kv")
    mask = te.placeholder((b, 1, 1, t), name="mask")
    queries = te.compute((b, h, s, d), lambda n, m, i, e: q[n, i, m, e], name="queries")
    keys = te.compute((b, h, d, t), lambda n, m, e, j: k[n, j, m, e], name="keys")
    values = te.compute((b, h, t, d), lambda n, m, j, e: v[n, j, m, e], name="values")
    e = te.reduce_axis(d, "e")
    shape = (b, h, s, t)
    found = te.compute(
        shape, lambda n, m, i, j: te.sum(queries[n, m, i, e] * keys[n, m, e, j], axis=e), name="scores"
    )
    scores = found
    if is_scaled:
        scores = te.compute(
            shape, lambda n, m, i, j: found[n, m, i, j] * 0.25 + mask[n, 0, 0, j], name="masked"
        )
    j1, j2, j3 = (te.reduce_axis(t, name) for name in ("j1", "j2", "j3"))
    most = te.compute(shape[:3], lambda n, m, i: te.max(scores[n, m, i, j1], axis=j1), name="most")
    powers = te.compute(shape, lambda n, m, i, j: te.exp(scores[n, m, i, j] - most[n, m, i]), name="powers")
    total = te.compute(shape[:3], lambda n, m, i: te.sum(powers[n, m, i, j2], axis=j2), name="total")
    parts = te.compute(shape, lambda n, m, i, j: powers[n, m, i, j] / total[n, m, i], name="parts")
    result = te.compute(
        (b, h, s, d),
        lambda n, m, i, c: te.sum(parts[n, m, i, j3] * values[n, m, j3, c], axis=j3),
        name="result",
    )
    return ComputeDAG((q, k, v, mask, result) if is_scaled else (q, k, v, result))


def in_doubles(arrays: dict[str, Array]) -> Array:
    q, k, v = (arrays[name].astype(np.float64).transpose(0, 2, 1, 3) for name in "qkv")
    scores = q @ k.transpose(0, 1, 3, 2)
    if "mask" in arrays:
        scores = scores * 0.25 + arrays["mask"]
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    found: Array = powers / powers.sum(axis=-1, keepdims=True) @ v
    return found


def scratch_bytes(dag: ComputeDAG, threads: int) -> list[int]:
    """Bytes of what is allocated, the largest first."""
    loops = loops_of(dag, attention_state, ISA, threads)
    found = [
        visit.statement.buffer
        for visit in walk(loops.body)
        if visit.event is Event.ENTER and isinstance(visit.statement, Allocate)
    ]
    return sorted((prod(buffer.shape) * FLOAT for buffer in found), reverse=True)


CASES = [
    Sizes(1, 2, 128, 128, 64),
    Sizes(2, 3, 33, 65, 48),
    Sizes(1, 2, 300, 300, 32, is_scaled=False),
    Sizes(1, 1, 197, 197, 80),
    Sizes(1, 2, 40, 1500, 64),
]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", CASES, ids=str)
def test_results(sizes: Sizes, threads: int) -> None:
    dag = attention(sizes)
    arrays = {tensor: normal(*tensor.shape, seed=n) for n, tensor in enumerate(dag.placeholders)}
    expected = in_doubles({tensor.op.name: array for tensor, array in arrays.items()})
    np.testing.assert_allclose(computed(dag, arrays, attention_state, ISA, threads), expected, atol=3e-5)


def test_scores_are_never_in_memory_at_once() -> None:
    sizes = Sizes(1, 4, 2048, 2048, 64)
    largest = scratch_bytes(attention(sizes), 1)[0]
    assert largest < 1.1 * max(ISA.caches.second, FLOAT * sizes.keys * 32)
    assert largest < FLOAT * sizes.queries * sizes.keys


def test_threads_share_the_blocks_of_all_heads() -> None:
    loops = loops_of(attention(Sizes(1, 1, 256, 256, 64)), attention_state, ISA, 2)
    parallel = [
        visit.statement.extent
        for visit in walk(loops.body)
        if visit.event is Event.ENTER
        and isinstance(visit.statement, For)
        and visit.statement.kind is ForKind.PARALLEL
    ]
    assert max(parallel) >= 4


def test_other_products_are_none_of_attention() -> None:
    a, b, c = (te.placeholder((64, 64), name=name) for name in "abc")
    j1, j2 = te.reduce_axis(64, "j1"), te.reduce_axis(64, "j2")
    first = te.compute((64, 64), lambda i, j: te.sum(a[i, j1] * b[j1, j], axis=j1), name="first")
    second = te.compute((64, 64), lambda i, j: te.sum(first[i, j2] * c[j2, j], axis=j2), name="second")
    assert attention_chain(ScheduleTask(ComputeDAG((a, b, c, second)), ISA, 1)) is None
    assert attention_state(ScheduleTask(ComputeDAG((a, b, c, second)), ISA, 1)) is None
