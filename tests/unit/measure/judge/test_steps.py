"""Outputs behind steps: honest engines that fall on the other side of a tie pass, faults do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import intarsia as ia
from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Tuple, TupleGetItem, Var
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.output_check import CHECK_KINDS
from intarsia.measure.judge.steps.pick_check import PickCheck
from intarsia.measure.judge.steps.range_check import RangeCheck
from intarsia.measure.judge.trials import trials_for
from intarsia.op import call
from intarsia.passes import partition_whole

pytestmark = pytest.mark.quick_tests(6)

ANCHORS, KEPT = 200, 20
Results = list[Array]


def numbers(values: Array | float | list[int], dtype: str = "float32") -> Constant:
    return Constant(np.asarray(values, dtype))


def detector(seed: int) -> tuple[IRModule, dict[str, Array]]:
    """The tail of an SSD: scores of anchors, half of them equal but for rounding, and boxes."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((64, ANCHORS))
    order = rng.permutation(64)
    weights[:, 1::2] = weights[:, ::2] * (1 + 1e-8 * rng.standard_normal((64, ANCHORS // 2)))
    x = Var("x", checked_type=TensorType((1, 64), DType.FLOAT32))
    scores = call("Sigmoid", call("MatMul", x, numbers(weights[order] / 8)))
    boxes = call("Reshape", call("MatMul", x, numbers(rng.standard_normal((64, ANCHORS * 4)) * 30)),
                 numbers([ANCHORS, 4], "int64"))  # fmt: skip
    top = call("TopK", scores, numbers([KEPT], "int64"), outputs=2)
    index = call("Squeeze", TupleGetItem(top, 1), numbers([0], "int64"))
    labels = numbers(rng.integers(0, 90, ANCHORS), "int64")
    results: tuple[Expr, ...] = (
        call("Gather", boxes, index),
        TupleGetItem(top, 0),
        call("Gather", labels, index),
    )
    module = IRModule.from_expr(Function((x,), Tuple(results)))
    return module, {"x": rng.standard_normal((1, 64)).astype(np.float32)}


def run(module: IRModule, inputs: dict[str, Array], name: str) -> Results:
    with ia.build(partition_whole(module, ia.Target.for_toolchain(name))) as executable:
        return [np.array(value) for value in executable.run_flat(*inputs.values())]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_engines_may_order_equal_scores_otherwise(seed: int) -> None:
    module, inputs = detector(seed)
    gate = Gate.for_module(module, inputs)
    assert any(isinstance(check, PickCheck) and check.where == (0, 1, 2) for check in gate.checks)
    for name in ("openvino", "onnxruntime", "native"):
        report = gate.check(run(module, inputs, name))
        assert report.passed, f"{name}: {report.message}"


def tied(results: Results) -> int:
    """A rank whose score is nearly that of the next one."""
    return int(np.abs(np.diff(results[1][0])).argmin())


def swap_equal(results: Results) -> None:
    rank = tied(results)
    for array in (results[0], results[1][0], results[2]):
        array[[rank, rank + 1]] = array[[rank + 1, rank]]


def swap_others(results: Results) -> None:
    for array in (results[0], results[1][0], results[2]):
        array[[0, -1]] = array[[-1, 0]]


def move_label(results: Results) -> None:
    results[2][3] += 1


def repeat_box(results: Results) -> None:
    for array in (results[0], results[1][0], results[2]):
        array[tied(results) + 1 if array is not results[0] else 1] = array[0]


def exchange_boxes(results: Results) -> None:
    results[0][[0, 5]] = results[0][[5, 0]]


def lose_the_best(results: Results) -> None:
    for array in (results[0], results[1][0], results[2]):
        array[:-1] = array[1:].copy()


def shift_boxes(results: Results) -> None:
    results[0] += 0.5


PLANTS: tuple[tuple[Callable[[Results], None], bool], ...] = (
    (swap_equal, True), (swap_others, False), (move_label, False), (repeat_box, False),
    (exchange_boxes, False), (lose_the_best, False), (shift_boxes, False),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_plants_in_detections(seed: int) -> None:
    module, inputs = detector(seed)
    gate = Gate.for_module(module, inputs)
    for plant, is_right in PLANTS:
        results = [array.copy() for array in gate.expected]
        plant(results)
        assert gate.check(results).passed is is_right, plant.__name__


def stepped(operator: str) -> tuple[IRModule, dict[str, Array]]:
    """A step of values that were computed, of which every 20th lies on a step but for rounding."""
    rng = np.random.default_rng(7)
    weights = np.eye(64) + 0.0
    x = Var("x", checked_type=TensorType((8, 64), DType.FLOAT32))
    computed = call("Add", call("MatMul", call("Mul", x, numbers(1 / 3)), numbers(weights * 3)), numbers(0.0))
    args = (computed, numbers(2.0)) if operator in ("Greater", "Less") else (computed,)
    data = rng.uniform(-9, 9, (8, 64)).astype(np.float32)
    data[:, ::20] = np.round(data[:, ::20]) + (0.5 if operator == "Round" else 0.0)
    result = call(operator, *args, to=7) if operator == "Cast" else call(operator, *args)
    step = call("Transpose", result, perm=(1, 0))
    return IRModule.from_expr(Function((x,), step)), {"x": data}


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("operator", ["Floor", "Ceil", "Round", "Cast", "Greater", "Less"])
def test_elements_near_a_step_may_be_on_either_side(operator: str) -> None:
    module, inputs = stepped(operator)
    gate = Gate.for_module(module, inputs)
    (check,) = gate.checks
    assert isinstance(check, RangeCheck)
    expected: NDArray[np.generic] = gate.expected[0]
    undecided = np.flatnonzero(check.low != check.high)
    assert 0 < undecided.size < expected.size
    other = expected.copy()
    low, high = check.low.flat[undecided], check.high.flat[undecided]
    other.flat[undecided] = np.where(expected.flat[undecided] == low, high, low)
    assert gate.check([other]).passed
    decided = np.flatnonzero(check.low == check.high)
    wrong = expected.copy()
    wrong.flat[decided[0]] = ~wrong.flat[decided[0]] if expected.dtype == bool else wrong.flat[decided[0]] + 1
    report = gate.check([wrong])
    assert not report.passed
    for name in ("openvino", "onnxruntime", "native"):
        try:
            results = run(module, inputs, name)
        except ia.support.errors.CompileError:
            continue  # refuses to convert numbers that may not fit
        assert gate.check(results).passed, name


def test_checks_are_restored_from_what_they_are_made_of() -> None:
    module, inputs = detector(0)
    gate = Gate.for_module(module, inputs)
    for check in gate.checks:
        again = CHECK_KINDS[check.kind].restored(check.facts(), check.arrays(), gate.expected)
        assert again.check(gate.expected) == check.check(gate.expected)


def test_the_best_of_given_numbers_is_exact() -> None:
    x = Var("x", checked_type=TensorType((4, 9), DType.FLOAT32))
    module = IRModule.from_expr(Function((x,), call("ArgMax", x, axis=1, keepdims=0)))
    gate = Gate.for_module(module, {"x": np.zeros((4, 9), np.float32)})
    assert not gate.check([np.array([0, 1, 0, 0])]).passed


def test_the_best_class_of_a_pixel_may_be_either_of_two() -> None:
    rng = np.random.default_rng(3)
    x = Var("x", checked_type=TensorType((1, 8, 16, 16), DType.FLOAT32))
    weights = rng.standard_normal((6, 8, 1, 1))
    weights[1::2] = weights[::2] * (1 + 1e-8)
    scores = call("Conv", x, numbers(weights))
    module = IRModule.from_expr(Function((x,), call("ArgMax", scores, axis=1, keepdims=0)))
    gate = Gate.for_module(module, {"x": rng.standard_normal((1, 8, 16, 16)).astype(np.float32)})
    (check,) = gate.checks
    assert isinstance(check, PickCheck)
    assert gate.check([gate.expected[0] ^ 1]).passed
    assert not gate.check([(gate.expected[0] + 2) % 6]).passed
    assert not gate.check([gate.expected[0] + 6]).passed


def test_the_reference_says_what_an_input_set_proves_nothing_of() -> None:
    x = Var("x", checked_type=TensorType((1, 8), DType.FLOAT32))
    halves = call("Mul", call("Add", x, numbers(1.0)), numbers(0.5))
    none = call("Slice", x, *(numbers([end], "int64") for end in (0, 0, 1)))
    module = IRModule.from_expr(Function((x,), Tuple((call("Round", halves), none))))
    gate = Gate.for_module(module, {"x": np.array([[0, 2, 4, 6, 1, 3, 5, 7]], np.float32)})
    assert 'no elements in output "output_1", which proves nothing of it' in gate.reference
    assert "unstable output: 50 % of output_0 lies within noise of a step" in gate.reference


def saturated(table: Array) -> IRModule:
    """Rows of a table in the order of scores between 0 and 1, then an operator on them."""
    x = Var("x", checked_type=TensorType((40,), DType.FLOAT32))
    best = call("TopK", call("Sigmoid", x), numbers([8], "int64"), outputs=2)
    rows = call("Gather", numbers(table), TupleGetItem(best, 1))
    return IRModule.from_expr(Function((x,), call("Sin", rows)))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_ties_of_saturated_scores_make_an_output_unstable(seed: int) -> None:
    """Nothing says which of many scores of 1.0 come first; without ties the order counts."""
    table = np.random.default_rng(seed).standard_normal((40, 4)).astype(np.float32)
    module = saturated(table)
    scores = np.random.default_rng(seed).standard_normal(40).astype(np.float32)
    ties = trials_for(module, {"x": 100 * np.abs(scores) + 50})[0]
    report = ties.gate.check([np.sin(table[-8:])])
    assert (report.passed, report.max_rel_error) == (True, 0.0)
    assert 'output "output_0" is unstable for ordinary inputs' in ties.gate.reference
    order = trials_for(module, {"x": scores})[0]
    assert "is unstable for ordinary inputs" not in order.gate.reference
    assert not order.gate.check([order.gate.expected[0][::-1]]).passed
