"""Elementwise calls have as few dimensions as their tensors tell apart, and compute the same."""

from __future__ import annotations

from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from tests.unit.native.graph.run_plan import run_plan
from tests.unit.native.graph.test_plan_region import ISA, planned

from intarsia.build import build
from intarsia.ir.parser import parse_module
from intarsia.native.graph.merged_dimensions import merged_axes, merged_shapes
from intarsia.op import infer_types
from intarsia.passes import partition_whole
from intarsia.target.reference import REFERENCE_TARGET


@pytest.mark.parametrize(
    ("left", "right", "merged"),
    [
        ((6, 4, 5), (6, 4, 5), ((120,), (120,))),
        ((6, 4, 5), (), ((120,), ())),
        ((6, 4, 5), (1, 1), ((120,), (1,))),
        ((2, 3, 4, 5), (3, 1, 1), ((2, 3, 20), (1, 3, 1))),
        ((2, 3, 4, 5), (4, 5), ((6, 20), (1, 20))),
        ((2, 3, 4, 5), (2, 3, 1, 1), ((6, 20), (6, 1))),
        ((2, 1, 4, 1, 5), (2, 1, 4, 1, 1), ((8, 5), (8, 1))),
        ((4, 1), (1, 5), None),
        ((4, 5), (5,), None),
        ((7,), (7,), None),
        ((0, 4), (0, 4), None),
    ],
)
def test_dimensions_that_all_tensors_share_are_one(
    left: tuple[int, ...], right: tuple[int, ...], merged: tuple[tuple[int, ...], ...] | None
) -> None:
    shapes = {0: left, 1: right}
    groups = merged_axes(shapes, frozenset())
    assert (None if groups is None else tuple(merged_shapes(shapes, groups).values())) == merged


def test_parts_of_a_whole_merge_behind_their_axis() -> None:
    shapes = {0: (6, 4, 5, 2), 1: (6, 1, 5, 2), 2: (6, 5, 5, 2)}
    groups = merged_axes(shapes, frozenset({1}), {(0, 1), (1, 1)})
    assert groups is not None
    assert list(merged_shapes(shapes, groups).values()) == [(6, 40), (6, 10), (6, 50)]


@pytest.mark.parametrize("seed", range(12))
def test_joined_tensors_are_the_same(seed: int) -> None:
    """What is computed of a Concat, whose parts may have one element along its axis, with a broadcast."""
    rng = Random(seed)
    rank = rng.randint(2, 5)
    shape, axis = [rng.choice((1, 2, 3, 5)) for _ in range(rank)], rng.randrange(rank)
    parts = [[*shape[:axis], rng.choice((1, 2, 4)), *shape[axis + 1 :]] for _ in range(rng.randint(1, 3))]
    whole = [*shape[:axis], sum(part[axis] for part in parts), *shape[axis + 1 :]]
    factor = [size if rng.random() < 0.6 else 1 for size in whole]
    generator = np.random.default_rng(seed)
    *arrays, scale = (generator.standard_normal(sizes).astype(np.float32) for sizes in (*parts, factor))
    head = ", ".join(f"%x{at}: Tensor[{_text(array)}, float32]" for at, array in enumerate(arrays))
    read = ", ".join([f"Sigmoid(%x{at})" if at == 0 else f"%x{at}" for at in range(len(arrays))])
    body = f"Tanh(Mul(Concat({read}, axis={axis}), meta[Constant][0]))"
    (found,) = run_plan(planned(f"def @main({head}) {{ {body} }}", scale), arrays, ISA)
    whole_array = np.concatenate([1 / (1 + np.exp(-arrays[0])), *arrays[1:]], axis)
    np.testing.assert_allclose(found, np.tanh(whole_array * scale), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_split_tensors_are_the_same(seed: int) -> None:
    """Parts of a tensor, which may have one element along the axis, with and without given sizes."""
    rng = Random(seed)
    shape, axis = [rng.choice((1, 2, 3, 5)) for _ in range(rng.randint(2, 5))], 0
    axis = rng.randrange(len(shape))
    sizes = [rng.choice((1, 2, 4)) for _ in range(rng.randint(2, 3))]
    shape[axis] = sum(sizes)
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    parts = ", ".join(f"%parts.{number}" for number in range(len(sizes)))
    program = (
        f"def @main(%x: Tensor[{_text(x)}, float32]) {{ let %parts = "
        f"Split(%x, meta[Constant][0], axis={axis - len(shape)}, outputs={len(sizes)}); ({parts}) }}"
    )
    found = run_plan(planned(program, np.array(sizes, np.int64)), [x], ISA)
    expected = np.split(x, np.cumsum(sizes)[:-1], axis)
    for part, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part, right)


@pytest.mark.parametrize("seed", range(12))
def test_expanded_tensors_are_the_same(seed: int) -> None:
    """A tensor that is repeated along some axes and new ones in front, and what is computed of it."""
    rng = Random(seed)
    shape = [rng.choice((1, 1, 2, 3, 5)) for _ in range(rng.randint(1, 5))]
    target = [rng.choice((1, 2, 4)) if size == 1 else size for size in shape]
    target = [rng.choice((1, 3)) for _ in range(rng.randint(0, 1))] + target
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    program = f"def @main(%x: Tensor[{_text(x)}, float32]) {{ Relu(Expand(%x, meta[Constant][0])) }}"
    (found,) = run_plan(planned(program, np.array(target, np.int64)), [x], ISA)
    np.testing.assert_array_equal(found, np.broadcast_to(np.maximum(x, 0), target))


def test_repeated_rows_are_long() -> None:
    (kernel,) = planned(
        "def @main(%x: Tensor[(2, 9, 1, 68, 2), float32]) { Relu(Expand(%x, meta[Constant][0])) }",
        np.array((2, 9, 5, 68, 2), np.int64),
    ).kernels
    assert kernel.dag.outputs[0].shape == (18, 5, 136)


@pytest.mark.parametrize("seed", range(16))
def test_reductions_are_the_same(seed: int) -> None:
    """What is reduced of a product with a broadcast factor, over any axes, kept or not."""
    rng = Random(seed)
    shape = [rng.choice((1, 2, 3, 5)) for _ in range(rng.randint(2, 5))]
    factor = [size if rng.random() < 0.6 else 1 for size in shape]
    axes = sorted(rng.sample(range(len(shape)), rng.randint(1, len(shape))))
    keep = rng.randint(0, 1)
    generator = np.random.default_rng(seed)
    x, c = (generator.standard_normal(sizes).astype(np.float32) for sizes in (shape, factor))
    body = f"ReduceMax(Mul(%x, meta[Constant][0]), meta[Constant][1], keepdims={keep})"
    plan = planned(f"def @main(%x: Tensor[{_text(x)}, float32]) {{ {body} }}", c, np.array(axes))
    (found,) = run_plan(plan, [x], ISA)
    np.testing.assert_array_equal(found, (x * c).max(tuple(axes), keepdims=bool(keep)))


def test_a_reduction_has_neighbours_as_one_dimension() -> None:
    text = "def @main(%x: Tensor[(7, 3, 5, 4), float32]) { ReduceMax(%x, meta[Constant][0]) }"
    (kernel,) = planned(text, np.array([0, 2, 3])).kernels
    assert [tensor.shape for tensor in kernel.dag.placeholders] == [(7, 3, 20)]


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize(("axis", "merged"), [(0, (7, 60)), (1, (7, 3, 20)), (-2, (21, 5, 4)), (3, (105, 4))])
def test_cumulative_sums_have_other_dimensions_as_one(
    axis: int, merged: tuple[int, ...], exclusive: int, reverse: int
) -> None:
    body = f"CumSum(%x, meta[Constant][0], exclusive={exclusive}, reverse={reverse})"
    plan = planned(f"def @main(%x: Tensor[(7, 3, 5, 4), float32]) {{ {body} }}", np.array(axis))
    assert [tensor.shape for tensor in plan.kernels[0].dag.placeholders] == [merged]
    x = np.random.default_rng(3).integers(-4, 4, (7, 3, 5, 4)).astype(np.float32)
    (result,) = run_plan(plan, [x], ISA)
    forward = np.flip(x, axis) if reverse else x
    sums = np.cumsum(forward, axis) - (forward if exclusive else 0)
    np.testing.assert_array_equal(result, np.flip(sums, axis) if reverse else sums)


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(("axis", "merged"), [(0, (7, 60)), (-3, (7, 3, 20)), (3, (105, 4)), (None, (7, 60))])
def test_positions_have_what_is_kept_as_one_dimension(
    name: str, axis: int | None, merged: tuple[int, ...], keep: int
) -> None:
    attrs = f"keepdims={keep}" if axis is None else f"axis={axis}, keepdims={keep}"
    plan = planned(f"def @main(%x: Tensor[(7, 3, 5, 4), float32]) {{ {name}(Neg(%x), {attrs}) }}")
    assert [tensor.shape for tensor in plan.kernels[0].dag.placeholders] == [merged]
    x = np.random.default_rng(3).integers(-4, 4, (7, 3, 5, 4)).astype(np.float32)
    (result,) = run_plan(plan, [x], ISA)
    extreme = np.argmax if name == "ArgMax" else np.argmin
    np.testing.assert_array_equal(result, extreme(-x, axis=axis or 0, keepdims=bool(keep)))


@pytest.mark.parametrize("seed", range(12))
def test_results_are_the_same(seed: int) -> None:
    """Some dimensions of the second tensor are 1 or missing; a constant has others."""
    rng = Random(seed)
    shape = [rng.choice((1, 2, 3, 5)) for _ in range(rng.randint(2, 5))]
    others = [[size if rng.random() < 0.6 else 1 for size in shape][rng.randint(0, 2) :] for _ in range(2)]
    generator = np.random.default_rng(seed)
    x, y, c = (generator.standard_normal(sizes).astype(np.float32) for sizes in (shape, *others))
    head = f"%x: Tensor[{_text(x)}, float32], %y: Tensor[{_text(y)}, float32]"
    body = "Clip(Sigmoid(Add(Mul(%x, %y), meta[Constant][0])), meta[Constant][1], meta[Constant][2])"
    plan = planned(
        f"def @main({head}) {{ {body} }}", c, *(np.array(limit, np.float32) for limit in (0.2, 0.7))
    )
    (found,) = run_plan(plan, [x, y], ISA)
    expected = np.clip(1 / (1 + np.exp(-(x * y + c))), 0.2, 0.7)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("body", "kernel"),
    [
        ("Softmax(Mul(%x, %x), axis=1)", (2, 3, 20)),
        ("Softmax(%x, axis=0)", (2, 60)),
        ("LogSoftmax(%x, axis=-1)", (24, 5)),
        ("LayerNormalization(%x, meta[Constant][0], axis=2)", (6, 20)),
        ("RMSNormalization(%x, meta[Constant][0], axis=-2)", (6, 20)),
        ("Relu(InstanceNormalization(%x, meta[Constant][1], meta[Constant][1]))", (2, 3, 20)),
        ("GroupNormalization(%x, meta[Constant][1], meta[Constant][1], num_groups=3)", (2, 3, 20)),
        ("Add(InstanceNormalization(%x, meta[Constant][1], meta[Constant][1]), meta[Constant][2])", None),
    ],
)
def test_normalizations_keep_their_dimensions_apart(body: str, kernel: tuple[int, ...] | None) -> None:
    """The last one adds a vector along the rows: there is nothing left to merge."""
    generator = np.random.default_rng(0)
    x, scale, vector = (
        generator.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 4, 5), (4, 5), (3,))
    )
    text = f"def @main(%x: Tensor[(2, 3, 4, 5), float32]) {{ {body} }}"
    constants = scale, vector, generator.standard_normal(5).astype(np.float32)
    plan = planned(text, *constants)
    (found,) = run_plan(plan, [x], ISA)
    assert plan.kernels[-1].dag.outputs[0].shape == (kernel or x.shape)
    module = infer_types(parse_module(text, constants))
    (expected,) = build(partition_whole(module, REFERENCE_TARGET)).run_flat(x)
    assert isinstance(expected, np.ndarray)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_vectors_along_an_axis_are_not_broadcast() -> None:
    """The scale belongs to the first dimension, though its length is that of the last as well."""
    x = np.random.default_rng(0).standard_normal((4, 2, 4)).astype(np.float32)
    scale = np.array([1, 2, 3, 4], np.float32)
    text = """def @main(%x: Tensor[(4, 2, 4), float32]) {
      DequantizeLinear(QuantizeLinear(%x, meta[Constant][0], meta[Constant][1], axis=0),
                       meta[Constant][0], meta[Constant][1], axis=0)
    }"""
    plan = planned(text, scale, np.zeros(4, np.int8))
    (found,) = run_plan(plan, [x], ISA)
    wide = scale[:, None, None]
    np.testing.assert_allclose(found, np.rint(x / wide) * wide)


def _text(array: npt.NDArray[np.float32]) -> str:
    return f"({', '.join(map(str, array.shape))}{',' if array.ndim == 1 else ''})"
