"""What NonMaxSuppression selects and what is gathered: ties may fall otherwise, faults do not pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import intarsia as ia
from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Tuple, Var
from intarsia.measure.judge.gate import Gate, run_arrays
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.output_check import CHECK_KINDS
from intarsia.measure.judge.steps.row_axis import row_axis
from intarsia.measure.judge.steps.suppression_check import SuppressionCheck
from intarsia.op import call, tuple_get
from intarsia.passes import partition_whole

pytestmark = pytest.mark.quick_tests(
    12,
    also=[
        "test_it_is_known_which_results_have_a_row_for_each_box[cut off-None]",
        "test_it_is_known_which_results_have_a_row_for_each_box[flattened-0]",
        "test_it_is_known_which_results_have_a_row_for_each_box[sum of all-None]",
        "test_other_selections_are_caught[gathered]",
    ],
)

SIZE, BOXES, CLASSES = 64, 40, 3
FORMS = ("gathered", "joined", "with rows", "ranked")
ALL_FORMS = (*FORMS, "boxes alone")
"""The class of boxes alone is not known: which is missing is not judged, but what is none or out of order."""


def numbers(values: object, dtype: str = "float32") -> Constant:
    return Constant(np.asarray(values, dtype))


def integers(*values: int) -> Constant:
    return numbers(list(values), "int64")


def column(rows: Expr, number: int) -> Expr:
    cut = call("Slice", rows, integers(number), integers(number + 1), integers(1))
    return call("Squeeze", cut, integers(1))


def head(seed: int, classes: int) -> tuple[Var, Expr, Expr, dict[str, Array]]:
    """Boxes of shape (1, BOXES, 4) and scores of shape (1, classes, BOXES), half of which are 1.0."""
    rng = np.random.default_rng(seed)
    x = Var("x", checked_type=TensorType((1, SIZE), DType.FLOAT32))
    centres, sizes = rng.uniform(0, 40, (BOXES, 2)), rng.uniform(4, 12, (BOXES, 2))
    logits = rng.uniform(-2, 2, (classes, BOXES))
    logits[:, : BOXES // 2] = rng.uniform(50, 60, (classes, BOXES // 2))
    tables = np.concatenate([centres, centres + sizes], axis=1), logits
    computed = [
        call("MatMul", x, numbers(np.tile(table.reshape(1, -1) / SIZE, (SIZE, 1)))) for table in tables
    ]
    boxes = call("Reshape", computed[0], integers(1, BOXES, 4))
    scores = call("Reshape", call("Sigmoid", computed[1]), integers(1, classes, BOXES))
    return x, boxes, scores, {"x": np.ones((1, SIZE), np.float32)}


def detector(form: str, seed: int = 3) -> tuple[IRModule, dict[str, Array]]:
    """The tail of a detector: boxes, scores and labels of what is selected, as `form` says."""
    x, boxes, scores, inputs = head(seed, 1 if form == "ranked" else CLASSES)
    limits = integers(20), numbers([0.3]), numbers([0.2])
    places = call("Squeeze", boxes, integers(0))
    outputs: list[Expr]
    if form == "ranked":
        best = call("TopK", call("Reshape", scores, integers(BOXES)), integers(BOXES * 3 // 4), outputs=2)
        places = call("Gather", places, tuple_get(best, 1))
        rows = call("NonMaxSuppression", call("Unsqueeze", places, integers(0)),
                    call("Unsqueeze", tuple_get(best, 0), integers(0, 1)), *limits)  # fmt: skip
        box = column(rows, 2)
        outputs = [call("Gather", places, box), call("Gather", tuple_get(best, 0), box)]
    else:
        rows = call("NonMaxSuppression", boxes, scores, *limits)
        outputs = [call("Gather", places, column(rows, 2)), call("GatherND", scores, rows), column(rows, 1)]
    if form == "joined":
        wide = [call("Unsqueeze", output, integers(1)) for output in outputs[1:]]
        parts = [call("Mul", outputs[0], numbers(2.5)), wide[0], call("Cast", wide[1], to=1)]
        outputs = [call("Unsqueeze", call("Concat", *parts, axis=1), integers(0))]
    elif form == "boxes alone":
        outputs = outputs[:1]
    elif form == "with rows":
        outputs.append(rows)
    return IRModule.from_expr(
        Function((x,), Tuple(tuple(outputs)) if len(outputs) > 1 else outputs[0])
    ), inputs


@cache
def gate_of(form: str, seed: int = 3) -> Gate:
    """The gate of a detector, as another process reads it."""
    module, inputs = detector(form, seed)
    gate = Gate.for_module(module, inputs)
    checks = tuple(
        CHECK_KINDS[check.kind].restored(check.facts(), check.arrays(), gate.expected)
        for check in gate.checks
    )
    assert [type(check) for check in checks] == [SuppressionCheck]
    return Gate(gate.names, gate.expected, checks, gate.reference, gate.is_proven)


def axis_of(form: str) -> int:
    return 1 if form == "joined" else 0


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("form", ALL_FORMS)
@pytest.mark.parametrize("seed", range(2))
def test_engines_pass(form: str, seed: int) -> None:
    module, inputs = detector(form, seed)
    gate = gate_of(form, seed)
    assert gate.is_proven
    for name in ("onnxruntime", "openvino", "reference"):
        with ia.build(partition_whole(module, ia.Target.for_toolchain(name))) as executable:
            report = gate.check(run_arrays(executable, inputs))
        assert report.passed, (name, report.message)


def zeroed(boxes: Array) -> Array:
    return boxes * 0


def scaled(boxes: Array) -> Array:
    return boxes * np.float32(1.01)


def reversed_(boxes: Array) -> Array:
    return np.flip(boxes, axis=-2).copy()


def random(boxes: Array) -> Array:
    return np.random.default_rng(0).uniform(0, 40, boxes.shape).astype(np.float32)


def one_moved(boxes: Array) -> Array:
    boxes[..., 1, 2] *= np.float32(1.1)
    return boxes


def not_a_number(boxes: Array) -> Array:
    boxes[..., 0, 0] = np.nan
    return boxes


def narrow(boxes: Array) -> Array:
    return boxes.astype(np.float16)


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("form", ALL_FORMS)
@pytest.mark.parametrize("fault", [zeroed, scaled, reversed_, random, one_moved, not_a_number, narrow])
def test_faults_in_gathered_boxes_are_caught(form: str, fault: Callable[[Array], Array]) -> None:
    gate = gate_of(form)
    boxes = fault(gate.expected[0].copy())
    assert not gate.check([boxes, *gate.expected[1:]]).passed


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("form", FORMS)
def test_other_selections_are_caught(form: str) -> None:
    gate, axis = gate_of(form), axis_of(form)
    count = gate.expected[0].shape[axis]
    orders = {
        "lost": [*range(1, count)],
        "repeated": [0, 0, *range(2, count)],
        "reversed": [*range(count)][::-1],
        "none": [],
    }
    for name, order in orders.items():
        results = [np.take(array, np.array(order, np.intp), axis) for array in gate.expected]
        assert not gate.check(results).passed, name
    assert not gate_of(form).check(gate_of(form, 4).expected).passed


@pytest.mark.parametrize("form", FORMS)
def test_boxes_of_equal_scores_may_be_in_either_order(form: str) -> None:
    """The first two have the score 1.0, and do not overlap."""
    gate, axis = gate_of(form), axis_of(form)
    count = gate.expected[0].shape[axis]
    order = [1, 0, *range(2, count)]
    assert gate.check([np.take(array, order, axis) for array in gate.expected]).passed


def test_boxes_that_are_not_those_of_the_selected_rows_are_caught() -> None:
    gate = gate_of("with rows")
    boxes, *rest = gate.expected
    order = [1, 0, *range(2, len(boxes))]
    report = gate.check([boxes[order], *rest])
    assert not report.passed
    assert report.message == 'row 0 of output "output_0" is not of the selected box'


def test_scores_beside_large_boxes_have_noise_of_their_own() -> None:
    gate = gate_of("joined")
    wrong = gate.expected[0].copy()
    wrong[0, -1, 4] += 1e-4
    assert not gate.check([wrong]).passed


def rows_of(form: str) -> tuple[Expr, Expr]:
    rows = call("NonMaxSuppression", *head(0, CLASSES)[1:3], integers(8))
    box = column(rows, 2)
    table = numbers(np.ones((BOXES, 4)))
    match form:
        case "cast":
            return call("Cast", rows, to=1), rows
        case "gathered along 1":
            return call("Gather", numbers(np.ones((1, BOXES, 4))), box, axis=1), rows
        case "transposed":
            return call("Transpose", rows, perm=(1, 0)), rows
        case "flattened":
            return call(
                "Reshape", call("Slice", rows, integers(2), integers(3), integers(1)), integers(-1)
            ), rows
        case "added to a row":
            return call("Add", call("Gather", table, box), numbers(np.ones((1, 4)))), rows
        case "sum of all":
            return call("ReduceSum", call("Gather", table, box), integers(0)), rows
        case "cut off":
            return call("Slice", rows, integers(0), integers(5), integers(0)), rows
        case _:
            return table, rows


@pytest.mark.parametrize(
    ("form", "axis"),
    [
        *(("cast", 0), ("gathered along 1", 1), ("transposed", 1), ("flattened", 0), ("added to a row", 0)),
        *(("sum of all", None), ("cut off", None), ("table", None)),
    ],
)
def test_it_is_known_which_results_have_a_row_for_each_box(form: str, axis: int | None) -> None:
    assert row_axis(*rows_of(form)) == axis
