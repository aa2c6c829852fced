import numpy as np
import pytest
from tests.ir_programs import BOOL, F32, add, ones, relu, var

from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    DType,
    Function,
    FuncType,
    Let,
    Op,
    Span,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    structural_digest,
    with_fields,
)
from intarsia.target import UNCONSTRAINED, DeviceType, VirtualDevice

SPAN = Span("model.onnx", "node")
CPU = VirtualDevice(DeviceType.CPU)


def test_expressions_are_compared_by_identity_and_can_be_keys() -> None:
    assert var("x") != var("x")
    assert len({var("x"), var("x")}) == 2


def test_facts_are_unknown_at_first() -> None:
    call = Call(Op("Relu"), (var(),))
    assert (call.checked_type, call.virtual_device, call.span) == (None, UNCONSTRAINED, None)


def test_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        var().name = "y"  # type: ignore[misc]  # this is what is tested


def test_types_that_follow_are_filled_in() -> None:
    x = var()
    whole = Tuple((x, var("c", BOOL)))
    assert Constant(np.zeros(3, np.int64)).checked_type == TensorType.of(np.zeros(3, np.int64))
    assert whole.checked_type == TupleType((F32, BOOL))
    assert TupleGetItem(whole, 1).checked_type == BOOL
    assert TupleGetItem(whole, 2).checked_type is None
    assert Function((x,), whole).checked_type == FuncType((F32,), TupleType((F32, BOOL)))
    assert Function((x,), whole).result_type == whole.checked_type
    assert Let(x, ones(), whole).checked_type == whole.checked_type


def test_types_do_not_follow_from_unknown_ones() -> None:
    unknown = Var("x")
    assert Tuple((unknown, var())).checked_type is None
    assert TupleGetItem(unknown, 0).checked_type is None
    assert Function((unknown,), unknown).checked_type == FuncType((None,), None)


def test_lists_and_dictionaries_are_accepted() -> None:
    x = var()
    call = Call(Op("Relu"), [x], {"a": 1})  # type: ignore[arg-type]  # accepted
    assert (call.args, call.attrs) == ((x,), Attrs({"a": 1}))
    function = Function([x], call, {"Primitive": 1})  # type: ignore[arg-type]  # accepted
    assert (function.params, function.attrs) == ((x,), Attrs({"Primitive": 1}))


def test_operators_are_written_with_their_domain() -> None:
    assert (str(Op("Conv")), str(Op("Scaler", "ai.onnx.ml"))) == ("Conv", "ai.onnx.ml::Scaler")


def test_with_fields_keeps_everything_else() -> None:
    call = Call(Op("Relu"), (var(),), Attrs({"a": 1}), checked_type=F32, virtual_device=CPU, span=SPAN)
    changed = with_fields(call, args=(var("y"),))
    assert changed.args[0] is not call.args[0]
    assert changed.op is call.op
    assert changed.attrs == call.attrs
    assert (changed.checked_type, changed.virtual_device, changed.span) == (F32, CPU, SPAN)


def test_with_fields_returns_the_same_object_for_the_same_values() -> None:
    x, call = var(), relu(var())
    assert with_fields(call, args=call.args, op=call.op) is call
    assert with_fields(call, args=(call.args[0],)) is call
    assert with_fields(x, checked_type=TensorType((2, 3), F32.dtype), span=None) is x
    assert with_fields(call, attrs=Attrs({})) is call


def test_with_fields_compares_sub_expressions_by_identity() -> None:
    call = add(var("x"), var("x"))
    assert with_fields(call, args=(var("x"), var("x"))) is not call


def test_with_fields_tells_attribute_kinds_apart() -> None:
    call = Call(Op("Cast"), (var(),), Attrs({"to": 1}))
    assert with_fields(call, attrs=Attrs({"to": 1.0})) is not call


def test_a_changed_constant_has_another_digest() -> None:
    constant = ones()
    before = structural_digest(constant)
    changed = with_fields(constant, data=np.zeros((2, 3), np.float32))
    assert structural_digest(changed) != before
    assert structural_digest(with_fields(constant, span=SPAN)) == before


def test_a_scalar_of_numpy_is_an_array_of_rank_0() -> None:
    constant = Constant(np.float32(2) * np.ones((), np.float32))
    assert isinstance(constant.data, np.ndarray)
    assert constant.checked_type == TensorType((), DType.FLOAT32)
