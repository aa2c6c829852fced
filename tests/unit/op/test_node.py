from intarsia.ir import Attrs, DType, Function, Op, TensorType, Var
from intarsia.op import absent
from intarsia.op.node import OUTPUTS, node_of

X = Var("x", checked_type=TensorType((2,), DType.FLOAT32))


def test_inputs_are_numbered_and_absent_ones_empty() -> None:
    node = node_of(Op("Clip"), (X, absent(), X), Attrs(), outputs=1)
    assert list(node.input) == ["i0", "", "i2"]
    assert list(node.output) == ["o0"]


def test_bodies_and_the_number_of_outputs_are_left_out() -> None:
    body = Function((X,), X)
    node = node_of(Op("Scan"), (X, body), Attrs({"num_scan_inputs": 1, OUTPUTS: 2}), outputs=2)
    assert list(node.input) == ["i0"]
    assert list(node.output) == ["o0", "o1"]
    assert [item.name for item in node.attribute] == ["num_scan_inputs"]
