"""Arithmetic on masks, lengths and casts that OpenVINO computes right within limits that are checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import intarsia as ia
from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Tuple, Var
from intarsia.ir.types import ANY
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.toolchain.openvino.integers import lost_bits, mask_limits

pytestmark = pytest.mark.quick_tests(
    9,
    also=[
        "test_a_product_that_something_else_reads_is_refused",
        "test_numbers_that_no_truth_value_is_read_from_are_no_masks",
    ],
)

OPENVINO = ia.Target.for_toolchain("openvino")
LENGTH = 16
MASK = Var("mask", checked_type=TensorType((2, LENGTH), DType.INT64))
AXIS = Constant(np.array(1))

Numbers = NDArray[np.generic]


def number(value: int) -> Constant:
    return Constant(np.array(value))


def axes(value: int) -> Constant:
    return Constant(np.array([value]))


SUMS = call("CumSum", MASK, AXIS)
TRUTH = call("Cast", MASK, to=9)
PROGRAMS: dict[str, tuple[Expr, ...]] = {
    "pairs (DeBERTa)": (
        call("Cast", call("Mul", call("Unsqueeze", MASK, axes(1)), call("Unsqueeze", MASK, axes(2))), to=9),
    ),
    "positions as real numbers (BLOOM)": (
        call("Cast", call("Mul", call("Sub", SUMS, number(1)), MASK), to=1), TRUTH
    ),
    "lengths compared with positions (fused BERT)": (
        call(
            "Less",
            call("Range", number(0), number(LENGTH), number(1)),
            call("Reshape", call("ReduceSum", MASK, axes(1), keepdims=0), Constant(np.array([-1, 1]))),
        ),
    ),
    "positions compared": (call("Greater", call("Mul", SUMS, MASK), number(3)), TRUTH),
}  # fmt: skip


def module_of(*results: Expr, params: tuple[Var, ...] = (MASK,)) -> IRModule:
    return IRModule.from_expr(Function(params, Tuple(results)))


def run(executable: Executable, *inputs: Numbers) -> list[Numbers]:
    return [np.array(item) for item in executable.run_flat(*inputs)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_masks_are_computed_right_up_to_their_limits_and_refused_beyond(name: str, tmp_path: Path) -> None:
    module = module_of(*PROGRAMS[name])
    function = module["main"]
    assert isinstance(function, Function)
    assert lost_bits(function) is not None
    low, high = (int(bound) for bound in mask_limits(function)[MASK])
    assert low <= -128
    assert high >= 128
    rng = np.random.default_rng(1)
    path = tmp_path / "masks.intarsia"
    with ia.build(module) as reference, ia.build(partition_whole(module, OPENVINO)) as executable:
        executable.save(path)
        with load(path) as loaded:
            for values in ([0, 1], [low, high], range(low, high + 1), [0, 1, low, high]):
                mask = rng.choice(np.array(values), (2, LENGTH))
                expected = run(reference, mask)
                for candidate in (executable, loaded):
                    for actual, wanted in zip(run(candidate, mask), expected, strict=True):
                        np.testing.assert_array_equal(actual, wanted)
            for candidate in (executable, loaded):
                for beyond in (low - 1, high + 1):
                    with pytest.raises(
                        ExecutionError, match=f"masks of {low} to {high}, and .* holds {beyond}"
                    ):
                        run(candidate, np.full((2, LENGTH), beyond))


def test_numbers_that_no_truth_value_is_read_from_are_no_masks() -> None:
    function = Function((MASK,), call("Cast", call("Mul", SUMS, MASK), to=1))
    assert not mask_limits(function)
    with pytest.raises(CompileError, match="computes integers in 32 bits"):
        ia.build(partition_whole(IRModule.from_expr(function), OPENVINO))


def test_a_mask_for_which_no_limit_helps_has_none() -> None:
    power = MASK
    for _ in range(6):
        power = call("Mul", power, power)  # type: ignore[assignment]
    assert not mask_limits(Function((MASK,), call("Cast", power, to=9)))


def test_a_program_that_needs_no_limits_has_none() -> None:
    assert not mask_limits(Function((MASK,), TRUTH))


@pytest.mark.parametrize("shape", [(5793, 5793), (0, 5793), (3, 4)])
def test_the_elements_of_a_tensor_are_compared_with_zero(shape: tuple[int, int]) -> None:
    open_ = Var("x", checked_type=TensorType((ANY, ANY), DType.UINT8))
    is_empty = call("Equal", call("ReduceProd", call("Shape", open_), keepdims=0), number(0))
    with ia.build(partition_whole(module_of(is_empty, params=(open_,)), OPENVINO)) as executable:
        assert run(executable, np.zeros(shape, np.uint8))[0] == (0 in shape)


def test_a_product_that_may_wrap_to_zero_is_refused() -> None:
    x = Var("x", checked_type=TensorType((5,), DType.UINT16))
    product = call("ReduceProd", call("Cast", x, to=7), axes(0))
    assert lost_bits(Function((x,), call("Equal", product, number(0)))) is not None


def test_a_product_that_something_else_reads_is_refused() -> None:
    open_ = Var("x", checked_type=TensorType((ANY, ANY), DType.UINT8))
    product = call("ReduceProd", call("Shape", open_), keepdims=0)
    both = Tuple((call("Equal", product, number(0)), call("Add", product, number(1))))
    assert lost_bits(Function((open_,), both)) is not None


WORDS = {"int32": 6, "uint32": 12, "int64": 7, "uint64": 13}


@pytest.mark.parametrize("target", ["int32", "int64"])
@pytest.mark.parametrize("seed", range(3))
def test_casts_between_words_keep_the_bits_that_follow_need(target: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = (Var(name, checked_type=TensorType((12,), DType.INT64)) for name in "xy")
    wide = call(("Add", "Sub", "Mul")[seed], x, y)
    narrow = call("Cast", call("Cast", wide, to=WORDS[target]), to=6)
    module = module_of(call("Max", narrow, Constant(np.array(-5, np.int32))), params=(x, y))
    pool = np.array([0, 1, -1, 5, 2**31 - 1, -(2**31), 2**30, 2**16 + 1])
    inputs = rng.choice(pool, 12), rng.choice(pool, 12)
    with ia.build(module) as reference, np.errstate(all="ignore"):
        expected = run(reference, *inputs)[0]
    with ia.build(partition_whole(module, OPENVINO)) as executable:
        np.testing.assert_array_equal(run(executable, *inputs)[0], expected)


def test_suppression_may_have_no_limit_of_boxes() -> None:
    boxes, scores = (Var(name, checked_type=TensorType(shape, DType.FLOAT32))
                     for name, shape in (("boxes", (1, 30, 4)), ("scores", (1, 2, 30))))  # fmt: skip
    most = Constant(np.array([2**63 - 1]))
    chosen = call("NonMaxSuppression", boxes, scores, most, Constant(np.array([0.5], np.float32)))
    module = module_of(chosen, params=(boxes, scores))
    rng = np.random.default_rng(2)
    corners = rng.random((1, 30, 2), np.float32)
    inputs = np.concatenate([corners, corners + 0.3], 2), rng.random((1, 2, 30), np.float32)
    with ia.build(module) as reference, ia.build(partition_whole(module, OPENVINO)) as executable:
        assert sorted(run(executable, *inputs)[0].tolist()) == sorted(run(reference, *inputs)[0].tolist())
