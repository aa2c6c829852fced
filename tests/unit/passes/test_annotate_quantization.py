"""Where a program is quantised: which values get marks, and that marks alone change nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.parallel_programs import image
from tests.pass_checks import checked, operator_counts
from tests.quantised_programs import marks, program, residual_network, weights

from intarsia.ir import Call, Constant, DType, If, IRModule, Op, TensorType, Var, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.op import call, verify
from intarsia.passes import AnnotateQuantization, FoldConstant
from intarsia.support.errors import UsageError


def marked_operators(mod: IRModule) -> list[str]:
    """What is marked, by the operator that computes it."""
    values = [mark.args[0] for mark in marks(mod)]
    return sorted(str(value.op) if isinstance(value, Call) else type(value).__name__ for value in values)


def test_a_residual_block_is_one_chain_of_integers() -> None:
    after = checked(AnnotateQuantization(), residual_network())
    # The second Relu is read by the pool, whose result is read by the classifier behind Flatten.
    assert marked_operators(after) == [
        *["Constant"] * 3, "Conv", "GlobalAveragePool", "Relu", "Relu", "Var",
    ]  # fmt: skip


def test_a_sum_that_float32_reads_too_is_left_alone() -> None:
    x = image(1, 4, 6, 6)
    first = call("Conv", x, weights(4, 4, 1, 1))
    joined = call("Add", call("Conv", first, weights(4, 4, 1, 1)), first)
    for results in ([joined], [call("Conv", joined, weights(2, 4, 1, 1)), call("Tanh", joined)]):
        after = checked(AnnotateQuantization(), program(*results))
        (add,) = [node for node in _calls(after) if isinstance(node.op, Op) and node.op.name == "Add"]
        assert not set(add.args[:1]) & set(marks(after))


def test_a_value_of_float32_keeps_its_other_users() -> None:
    """The residual connection around a layer normalisation is not rounded."""
    x = call("Softmax", image(2, 4))
    after = checked(AnnotateQuantization(), program(call("Mul", call("MatMul", x, weights(4, 4)), x)))
    (mul,) = [node for node in _calls(after) if isinstance(node.op, Op) and node.op.name == "Mul"]
    assert mul.args[1] not in marks(after)


def test_a_value_of_integers_replaces_that_of_float32_for_all_users() -> None:
    conv = call("Relu", call("Conv", image(1, 4, 6, 6), weights(4, 4, 1, 1)))
    body = call("Mul", call("Conv", conv, weights(4, 4, 1, 1)), conv)
    after = checked(AnnotateQuantization(), program(body, conv))
    (mul,) = [node for node in _calls(after) if isinstance(node.op, Op) and node.op.name == "Mul"]
    assert mul.args[1] in marks(after)
    body_after: Any = after["main"].body
    assert body_after.fields[1] not in marks(after)


def test_moves_are_behind_the_mark_of_what_an_integer_operator_computes() -> None:
    conv = call("Conv", image(1, 4, 6, 6), weights(4, 4, 1, 1))
    body = call("Conv", call("MaxPool", conv, kernel_shape=(2, 2)), weights(4, 4, 1, 1))
    after = checked(AnnotateQuantization(), program(body))
    assert marked_operators(after) == ["Constant", "Constant", "Conv", "Var"]


@pytest.mark.parametrize(
    ("attrs", "is_marked"), [({}, True), ({"group": 2}, False), ({"auto_pad": "SAME_UPPER"}, False)]
)
def test_a_transposed_convolution_of_one_group_is_a_layer(attrs: dict[str, Any], is_marked: bool) -> None:
    # onnx.reference fails on groups, so the program is not run.
    mod = program(call("ConvTranspose", image(1, 4, 6, 6), weights(4, 3, 2, 2), strides=(2, 2), **attrs))
    after = AnnotateQuantization()(mod)
    verify(after)
    assert marked_operators(after) == (["Constant", "Var"] if is_marked else [])
    axes = {mark.attrs["dtype"]: mark.attrs["axis"] for mark in marks(after)}
    assert axes == ({"uint8": -1, "int8": 1} if is_marked else {}), "weights are (C, M, taps)"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_one_layer_alone(number: int) -> None:
    after = checked(AnnotateQuantization(layers=(number,)), residual_network())
    assert len(marks(after)) == 2


@pytest.mark.parametrize(
    "body",
    [
        call(
            "MatMul", image(2, 3), image(2, 3).__class__("y", checked_type=TensorType((3, 2), DType.FLOAT32))
        ),
        call("Gemm", image(2, 3), weights(3, 2), alpha=2.0),
        call("Gemm", image(3, 2), weights(3, 2), transA=1),
        call("Relu", image(2, 3)),
    ],
)
def test_what_is_no_layer_stays(body: Call) -> None:
    before = program(body)
    assert AnnotateQuantization()(before) is before


def test_branches_stay() -> None:
    flag = Var("flag", checked_type=TensorType((), DType.BOOL))
    x = image(2, 3)
    before = program(If(flag, call("MatMul", x, weights(3, 3)), x))
    assert AnnotateQuantization()(before) is before


def test_marks_of_weights_are_not_folded_and_are_read_back() -> None:
    after = FoldConstant()(AnnotateQuantization()(residual_network()))
    assert operator_counts(after)["intarsia::simulated_quantize"] == 8
    printed = print_module(after)
    assert structural_equal(parse_module(printed.text, list(printed.constants)), after)
    assert sum(isinstance(mark.args[0], Constant) for mark in marks(after)) == 3


def test_a_negative_number_of_a_layer() -> None:
    with pytest.raises(UsageError, match=r"^layers has -2, expected numbers from 0$"):
        AnnotateQuantization(layers=(0, -2))


def _calls(mod: IRModule) -> list[Call]:
    from intarsia.ir import post_order

    return [node for node in post_order(mod["main"]) if isinstance(node, Call)]
