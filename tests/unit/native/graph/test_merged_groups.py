"""Groups that decisions merge with their readers: what is one kernel then, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.programs import constant, ints

from intarsia.build import build
from intarsia.ir import Expr, Function, IRModule, TensorType, Var
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.tune import Trace
from intarsia.tune.kernels import kernel_groups
from intarsia.tune.passes import TuneFusionMerges
from intarsia.tune.target_options import marked_functions

pytestmark = pytest.mark.quick_tests(6)

NATIVE = "cpu -toolchain=native -threads=1"
READERS = ("softmax", "norm", "left", "right", "mean", "conv", "both")


def read(x: Expr, y: Expr, reader: str) -> Expr:
    """What a reader computes of a square matrix x, and a matrix y of its shape."""
    assert isinstance(x.checked_type, TensorType)
    size = x.checked_type.static_shape[0]
    ones = constant(np.ones(size))
    match reader:
        case "softmax":
            return call("Softmax", x, axis=-1)
        case "norm":
            return call("LayerNormalization", x, ones, ones, axis=-1)
        case "left":
            return call("MatMul", x, y)
        case "right":
            return call("MatMul", y, x)
        case "mean":
            return call("ReduceMean", call("MatMul", x, x), keepdims=0)
        case "conv":
            image = call("Unsqueeze", x, ints(0, 1))
            return call("Conv", image, constant(np.ones((3, 1, 3, 3)) / 9), pads=(1, 1, 1, 1))
        case _:
            return call("Add", call("Softmax", x, axis=-1), call("Softmax", x, axis=0))


def program(size: int, made: tuple[str, ...], reader: str) -> IRModule:
    """Operators without loops of their own, and what reads their result."""
    x, y = (Var(name, checked_type=TensorType.of(np.zeros((size, size), np.float32))) for name in "xy")
    result: Expr = x
    for name in made:
        match name:
            case "turn":
                result = call("Transpose", result, perm=(1, 0))
            case "add":
                result = call("Add", result, y)
            case _:
                result = call("Tanh", result)
    return IRModule.from_expr(Function((x, y), read(result, y, reader)))


def merged(module: IRModule, threads: int = 1) -> Target:
    """Native with all groups merged that can be."""
    target = Target.for_toolchain("native", threads=threads)
    keys = sorted(group.key for group in kernel_groups(module, str(target)))
    return target.with_options(decisions=",".join(f"{key}:merge=true" for key in keys))


@settings(max_examples=examples(30), deadline=None)
@given(
    size=st.integers(3, 40),
    made=st.lists(st.sampled_from(["turn", "add", "tanh"]), min_size=1, max_size=4).map(tuple),
    reader=st.sampled_from(READERS),
    threads=st.sampled_from([1, 2]),
)
def test_merged_groups_compute_the_same(size: int, made: tuple[str, ...], reader: str, threads: int) -> None:
    module = program(size, made, reader)
    data = [np.random.default_rng(seed).standard_normal((size, size)).astype(np.float32) for seed in (0, 1)]
    (expected,) = build(module).run_flat(*data)
    (result,) = build(partition_whole(module, merged(module, threads))).run_flat(*data)
    np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("reader", ["softmax", "norm"])
def test_a_merged_group_is_no_kernel(reader: str) -> None:
    module = program(16, ("add",), reader)
    assert len(kernel_groups(module, NATIVE)) == 2
    mod = partition_whole(module, Target.parse(NATIVE))
    (question,) = TuneFusionMerges().questions(kernel_groups(mod), "")
    assert len(question.groups) == 2, "the group, and its reader"
    trace = Trace(mod)
    trace.add(question.instruction(), "merged")
    (function,) = marked_functions(trace.out_mod)
    assert str(function.target.option("decisions")).endswith(":merge=true")
    assert [group.key for group in kernel_groups(trace.out_mod)] == [question.groups[1]]
    replayed = Trace.from_json(trace.to_json(), mod)
    assert str(replayed.out_mod) == str(trace.out_mod)


def test_groups_with_several_readers_or_loops_are_not_asked_about() -> None:
    for module in (program(16, ("add",), "both"), program(16, (), "softmax")):
        assert TuneFusionMerges().questions(kernel_groups(module, NATIVE), NATIVE) == []
