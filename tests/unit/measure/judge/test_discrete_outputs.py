"""Equal, NonZero, NonMaxSuppression, rows of picked indices: honest engines pass, planted faults do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import intarsia as ia
from intarsia.ir import Call, Constant, DType, Expr, Function, IRModule, TensorType, Tuple, Var
from intarsia.measure.judge.gate import Gate, run_arrays
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.output_check import CHECK_KINDS
from intarsia.measure.judge.steps.range_check import RangeCheck
from intarsia.measure.judge.trials import trials_for
from intarsia.op import call, tuple_get
from intarsia.passes import partition_whole
from intarsia.support.errors import CompileError, UnsupportedModelError

pytestmark = pytest.mark.quick_tests(
    14,
    also=[
        "test_elements_at_a_bound_are_on_no_side_of_a_step[Clip]",
        "test_elements_near_a_step_may_be_selected_or_not[False]",
        "test_indices_of_unknown_number_that_were_reshaped_are_judged_by_their_numbers",
        "test_inputs_that_are_not_sorted_may_be_in_any_order",
        "test_plants_in_selections[narrow]",
        "test_rows_of_equal_scores_may_be_gathered_in_either_order[GatherND]",
        "test_what_is_zero_in_all_runs_is_not_selected",
    ],
)

SIZE = 64
ENGINES = ("onnxruntime", "openvino", "native", "reference")


def numbers(values: object, dtype: str = "float32") -> Constant:
    return Constant(np.asarray(values, dtype))


def computed(x: Expr) -> Expr:
    """The argument but for rounding, which engines do in their own ways."""
    return call("MatMul", call("Mul", x, numbers(1 / 3)), numbers(3 * np.eye(SIZE)))


def module_of(x: Var, *outputs: Expr) -> IRModule:
    return IRModule.from_expr(Function((x,), Tuple(outputs) if len(outputs) > 1 else outputs[0]))


def halves() -> tuple[Var, dict[str, Array]]:
    """An input of which every 20th number is 2."""
    x = Var("x", checked_type=TensorType((8, SIZE), DType.FLOAT32))
    data = np.random.default_rng(7).uniform(-9, 9, (8, SIZE)).astype(np.float32)
    data[:, ::20] = 2.0
    return x, {"x": data}


def engines_pass(module: IRModule, inputs: dict[str, Array], gate: Gate) -> None:
    passed = 0
    for name in ENGINES:
        try:
            executable = ia.build(partition_whole(module, ia.Target.for_toolchain(name)))
        except (CompileError, UnsupportedModelError):
            continue
        report = gate.check(run_arrays(executable, inputs))
        assert report.passed, (name, report.message)
        passed += 1
    assert passed > 1


def restored(gate: Gate) -> Gate:
    """The gate as another process reads it."""
    checks = tuple(
        CHECK_KINDS[check.kind].restored(check.facts(), check.arrays(), gate.expected)
        for check in gate.checks
    )
    return Gate(gate.names, gate.expected, checks, gate.reference, gate.is_proven)


def test_equal_numbers_near_each_other_may_be_equal_or_not() -> None:
    x, inputs = halves()
    module = module_of(x, call("Not", call("Equal", computed(x), numbers(2.0))))
    gate = restored(Gate.for_module(module, inputs))
    engines_pass(module, inputs, gate)
    (check,) = gate.checks
    assert isinstance(check, RangeCheck)
    (expected,) = gate.expected
    near, far = (0, 20), (0, 1)
    for position, is_right in ((near, True), (far, False)):
        changed = expected.copy()
        changed[position] ^= True
        assert gate.check([changed]).passed is is_right


def test_what_is_equal_by_its_meaning_stays_equal() -> None:
    """A maximum equals the element that it is of, in every engine."""
    x, inputs = halves()
    scores = computed(x)
    highest = call("ReduceMax", scores, numbers([1], "int64"), keepdims=1)
    module = module_of(x, call("Equal", scores, highest))
    inputs["x"][:, 5] = 20.0
    gate = Gate.for_module(module, inputs)
    engines_pass(module, inputs, gate)
    (expected,) = gate.expected
    assert expected[:, 5].all()
    changed = expected.copy()
    changed[0, 5] = False
    assert not gate.check([changed]).passed


def test_logic_decides_what_its_steps_do_not() -> None:
    """Either truth value of a comparison with a number near by is right, unless Or has another one."""
    x, inputs = halves()
    scores = computed(x)
    near, large = call("Greater", scores, numbers(2.0)), call("Greater", scores, numbers(-20.0))
    module = module_of(x, call("And", near, large), call("Cast", call("Or", near, large), to=7))
    gate = Gate.for_module(module, inputs)
    engines_pass(module, inputs, gate)
    both, any_of = (array.copy() for array in gate.expected)
    both[0, 20] ^= True
    assert gate.check([both, any_of]).passed
    any_of[0, 20] ^= 1
    assert not gate.check([both, any_of]).passed


def selection(*, with_positions: bool = True) -> tuple[IRModule, dict[str, Array]]:
    x, inputs = halves()
    scores = computed(x)
    positions = call("NonZero", call("Greater", scores, numbers(2.0)))
    values = call("GatherND", scores, call("Transpose", positions, perm=(1, 0)))
    return module_of(x, *([positions] if with_positions else []), values), inputs


@pytest.mark.parametrize("with_positions", [True, False])
def test_elements_near_a_step_may_be_selected_or_not(with_positions: bool) -> None:
    module, inputs = selection(with_positions=with_positions)
    gate = restored(Gate.for_module(module, inputs))
    assert gate.is_proven
    engines_pass(module, inputs, gate)
    data = inputs["x"]
    masks = data > 2, data >= 2, data > 2.5
    for mask, is_right in zip(masks, (True, True, False), strict=True):
        results = (np.array(np.nonzero(mask)), data[mask])
        report = gate.check(results if with_positions else results[1:])
        assert report.passed is is_right, report.message


def reverse(results: list[Array]) -> None:
    results[0], results[1] = results[0][:, ::-1], results[1][::-1]


def shift_values(results: list[Array]) -> None:
    results[1] = np.roll(results[1], 1)


def repeat_one(results: list[Array]) -> None:
    results[0][:, 1] = results[0][:, 0]


def lose_the_last(results: list[Array]) -> None:
    results[0], results[1] = results[0][:, :-1], results[1][:-1]


def leave_the_axis(results: list[Array]) -> None:
    results[0][1, 0] = SIZE


def narrow(results: list[Array]) -> None:
    results[0] = results[0].astype(np.int32)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("plant", [reverse, shift_values, repeat_one, lose_the_last, leave_the_axis, narrow])
def test_plants_in_selections(plant: Callable[[list[Array]], None]) -> None:
    module, inputs = selection()
    inputs["x"][-1, -1] = 8.5
    gate = Gate.for_module(module, inputs)
    results = [array.copy() for array in gate.expected]
    plant(results)
    assert not gate.check(results).passed


def test_what_is_zero_in_all_runs_is_not_selected() -> None:
    x, inputs = halves()
    module = module_of(x, call("NonZero", call("Relu", computed(x))))
    gate = Gate.for_module(module, inputs)
    engines_pass(module, inputs, gate)
    assert not gate.check([np.array(np.nonzero(np.ones((8, SIZE))))]).passed


BOXES = 40


def detector() -> tuple[IRModule, dict[str, Array]]:
    """Boxes and scores that are computed; of two classes, two boxes have equal scores."""
    rng = np.random.default_rng(3)
    x = Var("x", checked_type=TensorType((1, SIZE), DType.FLOAT32))
    centres, sizes = rng.uniform(0, 40, (BOXES, 2)), rng.uniform(4, 12, (BOXES, 2))
    corners = np.concatenate([centres, centres + sizes], axis=1)
    scores = rng.uniform(0.05, 0.9, (2, BOXES))
    scores[0, :2] = scores[1, 2:4] = 0.95
    tables = [np.tile(values.reshape(1, -1) / SIZE, (SIZE, 1)) for values in (corners, scores)]
    boxes = call("Reshape", call("MatMul", x, numbers(tables[0])), numbers([1, BOXES, 4], "int64"))
    ranked = call("Reshape", call("MatMul", x, numbers(tables[1])), numbers([1, 2, BOXES], "int64"))
    limits = numbers([20], "int64"), numbers([0.3]), numbers([0.2])
    return module_of(x, call("NonMaxSuppression", boxes, ranked, *limits)), {
        "x": np.ones((1, SIZE), np.float32)
    }


def lose_one(rows: Array) -> Array:
    return np.delete(rows, 2, axis=0)


def swap_two(rows: Array) -> Array:
    rows[[1, 3]] = rows[[3, 1]]
    return rows


def other_class(rows: Array) -> Array:
    rows[-1, 1] = 0
    return rows


def next_box(rows: Array) -> Array:
    rows[4, 2] = (rows[4, 2] + 1) % BOXES
    return rows


def twice(rows: Array) -> Array:
    return np.concatenate([rows[:1], rows])


def beyond(rows: Array) -> Array:
    rows[0, 2] = BOXES
    return rows


def all_boxes(_: Array) -> Array:
    return np.array([[0, label, box] for label in range(2) for box in range(20)], np.int64)


def none_at_all(rows: Array) -> Array:
    return rows[:0]


PLANTS = [lose_one, swap_two, other_class, next_box, twice, beyond, all_boxes, none_at_all]


@pytest.fixture(scope="module")
def gate_of_detections() -> Gate:
    module, inputs = detector()
    gate = restored(Gate.for_module(module, inputs))
    engines_pass(module, inputs, gate)
    return gate


@pytest.mark.slow
def test_engines_pass_on_detections(gate_of_detections: Gate) -> None:
    assert gate_of_detections.is_proven
    assert gate_of_detections.checks[0].kind == "suppression"


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("plant", PLANTS)
def test_plants_in_detections(plant: Callable[[Array], Array], gate_of_detections: Gate) -> None:
    assert not gate_of_detections.check([plant(gate_of_detections.expected[0].copy())]).passed


def test_boxes_of_equal_scores_may_be_in_either_order() -> None:
    module, inputs = detector()
    gate = Gate.for_module(module, inputs)
    (rows,) = gate.expected
    places = {tuple(row): place for place, row in enumerate(rows.tolist())}
    changed = rows.copy()
    for first, second in (((0, 0, 0), (0, 0, 1)), ((0, 1, 2), (0, 1, 3))):
        assert {first, second} <= set(places)
        changed[[places[first], places[second]]] = rows[[places[second], places[first]]]
    assert gate.check([changed]).passed, gate.check([changed]).message


@pytest.mark.parametrize("operator", ["GatherElements", "GatherND"])
def test_rows_of_equal_scores_may_be_gathered_in_either_order(operator: str) -> None:
    rng = np.random.default_rng(1)
    x = Var("x", checked_type=TensorType((2, SIZE), DType.FLOAT32))
    data = rng.uniform(0, 1, (2, SIZE)).astype(np.float32)
    data[:, 7] = data[:, 8] = 2.0
    best = call("TopK", computed(x), numbers([5], "int64"), outputs=2)
    indices = call("Unsqueeze", tuple_get(best, 1), numbers([-1], "int64"))
    table = numbers(rng.standard_normal((2, SIZE, 4)))
    if operator == "GatherND":
        rows = call("GatherND", table, indices, batch_dims=1)
    else:
        rows = call("GatherElements", table, call("Expand", indices, numbers([2, 5, 4], "int64")), axis=1)
    gate = Gate.for_module(module_of(x, rows, tuple_get(best, 0)), {"x": data})
    expected, values = gate.expected
    assert gate.check([expected[:, [1, 0, 2, 3, 4]], values]).passed
    assert not gate.check([expected[:, [0, 1, 3, 2, 4]], values]).passed
    assert not gate.check([expected + np.float32(0.1), values]).passed


def behind_a_step(operator: str) -> tuple[IRModule, dict[str, Array]]:
    """A product with, and a count of, what a step gives."""
    x, inputs = halves()
    step = call("Floor", computed(x)) if operator == "Floor" else call("Greater", computed(x), numbers(2.0))
    weights = np.random.default_rng(2).standard_normal((SIZE, SIZE)).astype(np.float32)
    inputs["x"][1:] += np.float32(0.01)  # the first row only is near a step
    inputs["x"][1:] += np.float32(0.02) * (np.abs(inputs["x"][1:] - np.rint(inputs["x"][1:])) < 0.005)
    result = call("MatMul", call("Cast", step, to=1), numbers(weights))
    count = call("ReduceSum", call("Cast", step, to=7), numbers([1], "int64"), keepdims=0)
    return module_of(x, result, count), inputs


@pytest.mark.parametrize("operator", ["Floor", "Greater"])
def test_results_behind_a_step_may_be_those_of_either_side(operator: str) -> None:
    module, inputs = behind_a_step(operator)
    gate = Gate.for_module(module, inputs)
    assert gate.is_proven
    engines_pass(module, inputs, gate)
    result, count = gate.expected
    weights = np.random.default_rng(2).standard_normal((SIZE, SIZE)).astype(np.float32)
    data = inputs["x"][0]
    is_near = data == 2
    for sign in (-1, 1):
        above = 2 if sign > 0 else 1
        if operator == "Floor":
            step = np.where(is_near, above, np.floor(data))
        else:
            step = np.where(is_near, sign > 0, data > 2)
        other, number = result.copy(), count.copy()
        other[0], number[0] = step.astype(np.float32) @ weights, step.sum()
        report = gate.check([other, number])
        assert report.passed, report.message
    for row, is_right in ((0, True), (1, False)):
        number = count.copy()
        number[row] += 1
        assert gate.check([result, number]).passed is is_right
    wrong = result.copy()
    wrong[1, 3] += 0.01
    assert not gate.check([wrong, count]).passed


def fractions_of(scale: float, seed: int) -> tuple[IRModule, dict[str, Array]]:
    """Numbers without their whole part, as of phases: of some, both ends of 0 to 1 are right."""
    rng = np.random.default_rng(seed)
    x = Var("x", checked_type=TensorType((500, SIZE), DType.FLOAT32))
    weights = numbers(rng.standard_normal((SIZE, 8)) * scale)
    phases = call("MatMul", x, weights)
    inputs = {"x": rng.standard_normal((500, SIZE)).astype(np.float32)}
    return module_of(x, call("Sub", phases, call("Floor", phases))), inputs


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("scale", [1.0, 100.0, 1000.0])
@pytest.mark.parametrize("seed", range(2))
def test_fractions_of_large_numbers_may_be_those_of_either_side(scale: float, seed: int) -> None:
    module, inputs = fractions_of(scale, seed)
    gate = Gate.for_module(module, inputs)
    engines_pass(module, inputs, gate)
    expected = gate.expected[0]
    middle = np.abs(expected - 0.5) < 0.3
    moved = np.where(middle, expected * np.float32(1.1), expected)
    for wrong in (moved, np.roll(expected, 1), np.zeros_like(expected)):
        assert not gate.check([wrong]).passed


@pytest.mark.parametrize("bounding", ["Relu", "Clip", "Max"])
def test_elements_at_a_bound_are_on_no_side_of_a_step(bounding: str) -> None:
    """Engines agree in what a Relu or Clip cuts off, so that a step there is none by chance."""
    x, inputs = halves()
    inputs["x"][:, 1:] = -np.abs(inputs["x"][:, 1:])
    least = numbers(0.0 if bounding == "Relu" else 0.75)
    bounded = call(bounding, computed(x), *([least] if bounding != "Relu" else []))
    step = call("Cast", call("Greater", bounded, least), to=1)
    weights = numbers(np.random.default_rng(2).standard_normal((SIZE, 4)))
    module = module_of(x, call("MatMul", step, weights))
    gate = Gate.for_module(module, inputs)
    engines_pass(module, inputs, gate)
    wrong = gate.expected[0].copy()
    wrong[1, 3] += 0.001
    assert not gate.check([wrong]).passed


def best_along(
    axis: int, *, is_sorted: bool, largest: bool, outputs: str = "values indices"
) -> tuple[IRModule, dict[str, Array]]:
    """The best of computed numbers along an axis, of which two in each row are equal but for rounding."""
    rng = np.random.default_rng(9)
    x = Var("x", checked_type=TensorType((4, 8, SIZE), DType.FLOAT32))
    data = rng.uniform(-9, 9, (4, 8, SIZE)).astype(np.float32)
    ties = np.moveaxis(data, axis, 0)
    ties[:2] = 20.0 if largest else -20.0
    count = numbers([3], "int64")
    best = call("TopK", computed(x), count, outputs=2, axis=axis, sorted=int(is_sorted), largest=int(largest))
    table = numbers(rng.standard_normal((4, 8, SIZE)))
    results: dict[str, Expr] = {
        "values": tuple_get(best, 0),
        "indices": call("Cast", tuple_get(best, 1), to=6),
        "gathered": call("GatherElements", table, tuple_get(best, 1), axis=axis),
    }
    return module_of(x, *(results[name] for name in outputs.split())), {"x": data}


def in_order(results: list[Array], axis: int, order: list[int]) -> list[Array]:
    return [np.take(array, order, axis) for array in results]


OUTPUTS = ["values indices", "indices", "values indices gathered", "values gathered", "gathered"]


def selections(*forms: tuple[object, ...], outputs: list[str]) -> list[object]:
    """Return all pairs of forms and outputs; `make test` has each form and each output, not each pair."""
    return [
        pytest.param(*form, which, marks=[pytest.mark.slow] * (number % len(forms) != at))
        for at, form in enumerate(forms)
        for number, which in enumerate(outputs)
    ]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("axis", "largest", "outputs"), selections((0, True), (1, False), (-1, True), outputs=OUTPUTS)
)
def test_the_best_along_any_axis_may_be_in_either_order_of_equal_ones(
    axis: int, largest: bool, outputs: str
) -> None:
    module, inputs = best_along(axis, is_sorted=True, largest=largest, outputs=outputs)
    gate = restored(Gate.for_module(module, inputs))
    engines_pass(module, inputs, gate)
    results = list(gate.expected)
    assert gate.check(in_order(results, axis, [1, 0, 2])).passed
    for order in ([0, 2, 1], [0, 1, 1], [0, 0, 2]):
        assert not gate.check(in_order(results, axis, order)).passed
    for number in range(len(results)):
        wrong = [array.copy() for array in results]
        wrong[number][-1, -1, -1] += 1
        assert not gate.check(wrong).passed


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("axis", "largest", "outputs"),
    selections((0, True), (1, False), (-1, True), outputs=["values", *OUTPUTS]),
)
def test_the_best_that_are_not_sorted_may_be_in_any_order(axis: int, largest: bool, outputs: str) -> None:
    module, inputs = best_along(axis, is_sorted=False, largest=largest, outputs=outputs)
    gate = restored(Gate.for_module(module, inputs))
    engines_pass(module, inputs, gate)
    results = list(gate.expected)
    for order in ([1, 0, 2], [2, 1, 0], [1, 2, 0]):
        assert gate.check(in_order(results, axis, order)).passed
    assert not gate.check([np.roll(results[0], 1, axis), *results[1:]]).passed or len(results) == 1
    for fault in ([0, 1, 1], [2, 2, 2]):
        assert not gate.check(in_order(results, axis, fault)).passed
    for number in range(len(results)):
        wrong = [array.copy() for array in results]
        wrong[number][-1, -1, -1] += 1
        assert not gate.check(wrong).passed


def best_of_an_input_k(
    *, is_computed: bool = False, axis: int = -1, outputs: str = "values indices"
) -> tuple[IRModule, dict[str, Array]]:
    """The best of computed numbers, of which two in each row are equal but for rounding; k is an input."""
    rng = np.random.default_rng(3)
    x = Var("x", checked_type=TensorType((4, 8, SIZE), DType.FLOAT32))
    k = Var("k", checked_type=TensorType((1,), DType.INT64))
    data = rng.uniform(-9, 9, (4, 8, SIZE)).astype(np.float32)
    np.moveaxis(data, axis, 0)[:2] = 20.0
    count = call("Add", k, numbers([1], "int64")) if is_computed else k
    best = call("TopK", computed(x), count, outputs=2, axis=axis)
    indices = tuple_get(best, 1)
    boxes, table = (numbers(rng.standard_normal((4, 8, SIZE, *tail))) for tail in ((5,), ()))
    repeated = call(
        "Expand", call("Unsqueeze", indices, numbers([3], "int64")), numbers([1, 1, 1, 5], "int64")
    )
    results: dict[str, Expr] = {
        "values": tuple_get(best, 0),
        "indices": call("Cast", indices, to=6),
        "gathered": call("GatherElements", table, indices, axis=axis),
        "boxes": call("GatherElements", boxes, repeated, axis=axis % 3),
    }
    body = Tuple(tuple(results[name] for name in outputs.split()))
    return IRModule.from_expr(Function((x, k), body)), {"x": data, "k": np.array([3 - is_computed])}


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    ("is_computed", "axis", "outputs"),
    selections((False, -1), (True, 1), outputs=[*OUTPUTS, "indices boxes", "boxes gathered"]),
)
def test_the_best_of_a_number_that_is_an_input_may_be_in_either_order_of_equal_ones(
    is_computed: bool, axis: int, outputs: str
) -> None:
    module, inputs = best_of_an_input_k(is_computed=is_computed, axis=axis, outputs=outputs)
    gate = restored(Gate.for_module(module, inputs))
    assert [check.kind for check in gate.checks] == ["pick"]
    engines_pass(module, inputs, gate)
    results = list(gate.expected)
    along = axis % 3
    assert gate.check(in_order(results, along, [1, 0, 2])).passed
    for order in ([0, 2, 1], [0, 1, 1], [0, 0, 2]):
        assert not gate.check(in_order(results, along, order)).passed
    for number in range(len(results)):
        wrong = [array.copy() for array in results]
        wrong[number].reshape(-1)[-1] += 1
        assert not gate.check(wrong).passed


def test_indices_of_unknown_number_that_were_reshaped_are_judged_by_their_numbers() -> None:
    """They select from other rows than those of their scores."""
    x = Var("x", checked_type=TensorType((4, SIZE), DType.FLOAT32))
    k = Var("k", checked_type=TensorType((1,), DType.INT64))
    indices = tuple_get(call("TopK", computed(x), k, outputs=2), 1)
    table = numbers(np.random.default_rng(4).standard_normal((4, SIZE)))
    rows = call("GatherElements", table, call("Reshape", indices, numbers([2, -1], "int64")), axis=1)
    data = np.random.default_rng(5).uniform(-9, 9, (4, SIZE)).astype(np.float32)
    gate = Gate.for_module(IRModule.from_expr(Function((x, k), rows)), {"x": data, "k": np.array([3])})
    assert [check.kind for check in gate.checks] == ["numeric"]
    assert gate.check(gate.expected).passed


def test_the_best_none_are_an_empty_result() -> None:
    module, inputs = best_of_an_input_k()
    gate = Gate.for_module(module, inputs | {"k": np.array([0])})
    assert gate.check(gate.expected).passed


def test_the_fourth_best_is_none_of_three() -> None:
    """Where the best three are not sorted, one of them is missing."""
    module, inputs = best_along(-1, is_sorted=False, largest=True)
    gate = Gate.for_module(module, inputs)
    order = np.argsort(-inputs["x"], axis=-1)[..., [0, 1, 3]]
    report = gate.check([np.take_along_axis(inputs["x"], order, -1), order.astype(np.int32)])
    assert not report.passed
    assert "below the best 3" in report.message


def test_inputs_that_are_not_sorted_may_be_in_any_order() -> None:
    """No rounding is there, but no order either; integers have no noise."""
    for dtype in (DType.FLOAT32, DType.INT64):
        x = Var("x", checked_type=TensorType((4, SIZE), dtype))
        best = call("TopK", x, numbers([5], "int64"), outputs=2, sorted=0)
        data = np.random.default_rng(1).permuted(np.tile(np.arange(SIZE), (4, 1)), axis=1)
        module = module_of(x, tuple_get(best, 0), tuple_get(best, 1))
        gate = Gate.for_module(module, {"x": data.astype(dtype.numpy)})
        results = list(gate.expected)
        assert gate.check(in_order(results, 1, [4, 0, 2, 1, 3])).passed
        assert not gate.check([results[0] - 1, results[1]]).passed
        assert not gate.check([results[0], (results[1] + 1) % SIZE]).passed


def test_the_report_says_how_much_of_an_output_lies_behind_steps_that_are_near() -> None:
    """Of large numbers, few digits of the fraction are known: where it is near 0 or 1, either passes."""
    for scale, is_told in ((1.0, False), (1000.0, True)):
        module, inputs = fractions_of(scale, 0)
        reference = trials_for(module, inputs)[0].gate.reference
        assert ('output "output_0" is unstable for ordinary inputs' in reference) is is_told


def test_what_is_near_the_last_of_the_best_may_be_left_out() -> None:
    """Six of eight equal rows are selected in any order; which of them, no engine has to agree on."""
    rng = np.random.default_rng(5)
    x = Var("x", checked_type=TensorType((2, SIZE), DType.FLOAT32))
    data = rng.uniform(0, 1, (2, SIZE)).astype(np.float32)
    data[:, 8:16] = 2.0
    best = call("TopK", computed(x), numbers([6], "int64"), outputs=2, sorted=0)
    table = numbers(rng.standard_normal((2, SIZE)))
    rows = call("GatherElements", table, tuple_get(best, 1), axis=1)
    gate = Gate.for_module(module_of(x, rows), {"x": data})
    assert gate.is_proven
    assert gate.check([table.data[:, [15, 9, 10, 14, 12, 8]]]).passed
    for wrong in ([15, 9, 10, 14, 12, 7], [15, 9, 10, 14, 12, 12]):
        assert not gate.check([table.data[:, wrong]]).passed


def test_functions_that_saturate_are_near_a_step_though_no_run_differs() -> None:
    """The largest number below 1 is a right result for a Sigmoid, too."""
    x = Var("x", checked_type=TensorType((16, SIZE), DType.FLOAT32))
    places = call("Mul", call("Sigmoid", computed(x)), numbers(31.0))
    cell = call("Floor", places)
    table = np.random.default_rng(1).standard_normal(33).astype(np.float32)
    module = module_of(x, call("Gather", numbers(table), call("Cast", cell, to=7)))
    inputs = {"x": np.where(np.random.default_rng(2).random((16, SIZE)) < 0.5, 300, -300).astype(np.float32)}
    gate = Gate.for_module(module, inputs)
    engines_pass(module, inputs, gate)
    below = np.where(inputs["x"] > 0, table[30], table[0])
    assert gate.check([below]).passed
    assert not gate.check([np.where(inputs["x"] > 0, table[31], table[1])]).passed


def test_a_step_may_be_an_output_and_an_inner_step() -> None:
    """What is computed of it is off by as much as it is, and may be by more than its noise."""
    module, inputs = fractions_of(1000.0, 0)
    (x,), body = module["main"].params, module["main"].body
    assert isinstance(body, Call)
    both = IRModule.from_expr(Function((x,), Tuple((body.args[1], body))))
    gate = Gate.for_module(both, inputs)
    engines_pass(both, inputs, gate)
    assert not gate.check([gate.expected[0], np.roll(gate.expected[1], 1)]).passed


@pytest.mark.parametrize("operator", ["Cast", "Greater", "Round"])
def test_what_follows_a_step_jumps_only_where_it_does(operator: str) -> None:
    """The numbers that Floor gives are exact: 3 is not near 2.9 for a conversion to integers."""
    x, inputs = halves()
    whole = call("Clip", call("Floor", computed(x)), numbers(-8.0), numbers(8.0))
    result = {
        "Cast": lambda: call("Cast", whole, to=7),
        "Greater": lambda: call("Cast", call("Greater", whole, numbers(1.0)), to=7),
        "Round": lambda: call("Round", whole),
    }[operator]()
    gate = Gate.for_module(module_of(x, result), inputs)
    engines_pass(module_of(x, result), inputs, gate)
    (check,) = gate.checks
    assert isinstance(check, RangeCheck)
    is_near = inputs["x"] == 2
    assert (check.low != check.high).sum() == is_near.sum()
    expected = gate.expected[0]
    assert gate.check([np.where(is_near, check.low, expected)]).passed
    assert not gate.check([expected - 1]).passed


def test_places_in_a_grid_are_on_either_side_only_near_its_lines() -> None:
    """Floor and the Cast behind it jump together; what Floor gave is not near a line because it is on it."""
    x, inputs = halves()
    places = call("Mul", call("Tanh", call("Mul", computed(x), numbers(0.25))), numbers(9.0))
    cell = call("Floor", places)
    table = np.random.default_rng(1).standard_normal(32).astype(np.float32)
    index = call("Add", call("Cast", cell, to=7), numbers([16], "int64"))
    module = module_of(x, call("Add", call("Gather", numbers(table), index), call("Sub", places, cell)))
    gate = Gate.for_module(module, inputs)
    engines_pass(module, inputs, gate)
    expected = 9 * np.tanh(inputs["x"] / 4)
    is_far = np.abs(expected - np.rint(expected)) > 0.05
    wrong = gate.expected[0] + np.where(is_far & (expected > 1), np.float32(0.01), np.float32(0))
    assert not gate.check([wrong]).passed
