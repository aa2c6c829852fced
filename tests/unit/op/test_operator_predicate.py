"""Which toolchain can run a call."""

from __future__ import annotations

import pytest

from intarsia.ir import DType, TensorType, Var
from intarsia.op import call
from intarsia.op.operator_predicate import (
    holding_operator_predicate,
    operator_predicate,
    register_operator_predicate,
)
from intarsia.support.errors import UsageError

RELU = call("Relu", Var("x", checked_type=TensorType((2,), DType.FLOAT32)))


@pytest.mark.parametrize("toolchain", ["onnxruntime", "openvino", "reference"])
def test_the_class_of_a_toolchain_is_asked(toolchain: str) -> None:
    assert operator_predicate(toolchain)(RELU)


def test_a_registered_predicate_comes_before_the_class() -> None:
    with holding_operator_predicate("openvino", lambda _: False):
        assert not operator_predicate("openvino")(RELU)
    assert operator_predicate("openvino")(RELU)


def test_a_predicate_may_come_without_a_class() -> None:
    with holding_operator_predicate("acme", lambda found: found is RELU):
        assert operator_predicate("acme")(RELU)


def test_a_second_predicate_is_an_error() -> None:
    with (
        holding_operator_predicate("acme", lambda _: False),
        pytest.raises(UsageError, match="operator predicate 'acme' is already registered"),
    ):
        register_operator_predicate("acme", lambda _: True)


def test_unknown_names_are_errors() -> None:
    with pytest.raises(UsageError) as caught:
        operator_predicate("onnxruntim")
    assert str(caught.value) == "unknown toolchain 'onnxruntim'\nhelp: did you mean onnxruntime?"
