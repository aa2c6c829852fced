"""Programs written here, exported."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from tests.onnx_models import model_of, onnxruntime_outputs

from intarsia import op
from intarsia.frontend.onnx import from_onnx, onnx_source, to_onnx
from intarsia.frontend.onnx.exporter import DroppedDevicesWarning
from intarsia.frontend.onnx.graph_walk import nodes_of
from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    Span,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    with_fields,
)
from intarsia.op.device_call import device_copy
from intarsia.support.errors import UnsupportedModelError
from intarsia.target import DeviceType, Target, VirtualDevice
from intarsia.toolchain.registered import toolchain

F32 = TensorType((2, 3), DType.FLOAT32)
FLAG = TensorType((), DType.BOOL)
INDEX = TensorType((), DType.INT64)
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def var(name: str = "x", type_: TensorType = F32) -> Var:
    return Var(name, checked_type=type_)


def run(function: Function, *inputs: Any, module: IRModule | None = None) -> list[Any]:
    model = to_onnx(function, module)
    onnx.checker.check_model(model, full_check=True)
    return onnxruntime_outputs(
        model, dict(zip((item.name for item in model.graph.input), inputs, strict=True))
    )


def assert_outputs(found: list[Any], *expected: Any) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def function(params: tuple[Var, ...], body: Expr, **attrs: Any) -> Function:
    return Function(params, body, Attrs(attrs))


def test_inputs_and_outputs_are_named() -> None:
    x, y = var(), var("y")
    body = Tuple((op.call("Add", x, y), op.call("Sub", x, y)))
    model = to_onnx(function((x, y), body, output_names=("sum", "difference"), global_symbol="main_0"))
    assert [item.name for item in model.graph.input] == ["x", "y"]
    assert [item.name for item in model.graph.output] == ["sum", "difference"]
    assert model.graph.name == "main_0"


def test_outputs_without_names() -> None:
    x = var()
    model = to_onnx(Function((x,), Tuple((op.call("Neg", x), op.call("Abs", x)))))
    assert [item.name for item in model.graph.output] == ["output_0", "output_1"]


def test_parameters_of_one_name() -> None:
    x, again = var(), var()
    assert_outputs(run(Function((x, again), op.call("Sub", x, again)), X, 2 * X), -X)


def test_nested_tuples_are_flattened() -> None:
    x = var()
    neg = op.call("Neg", x)
    body = Tuple((neg, Tuple((x, Tuple((neg,))))))
    assert_outputs(run(Function((x,), body), X), -X, X, -X)


def test_a_shared_expression_is_one_node() -> None:
    x = var()
    shared = op.call("Exp", x)
    model = to_onnx(Function((x,), op.call("Add", shared, shared)))
    assert [node.op_type for node in model.graph.node] == ["Exp", "Add"]


def test_let() -> None:
    x, y = var(), Var("y", checked_type=F32)
    body = Let(y, op.call("Neg", x), op.call("Mul", y, y))
    assert_outputs(run(Function((x,), body), X), X * X)


def test_global_functions_are_inlined_each_time() -> None:
    x, a = var(), var("a")
    twice = GlobalVar("twice")
    callee = Function((a,), op.call("Add", a, a))
    inner = Call(twice, (x,), checked_type=F32)
    main = Function((x,), Call(twice, (inner,), checked_type=F32))
    module = IRModule({twice: callee, GlobalVar("main"): main})
    assert_outputs(run(main, X, module=module), 4 * X)


def test_function_values_are_inlined_and_may_capture() -> None:
    x, a = var(), var("a")
    captured = op.call("Neg", x)
    inner = Function((a,), op.call("Mul", a, captured))
    body = op.call("Add", Call(inner, (x,), checked_type=F32), Call(inner, (captured,), checked_type=F32))
    assert_outputs(run(Function((x,), body), X), -X * X + X * X)


def test_functions_over_tuples_are_inlined() -> None:
    pair = Var("pair", checked_type=TupleType((F32, F32)))
    swap = Function((pair,), Tuple((TupleGetItem(pair, 1), TupleGetItem(pair, 0))))
    x, y = var(), var("y")
    assert_outputs(
        run(Function((x, y), Call(swap, (Tuple((x, y)),), checked_type=swap.result_type)), X, 2 * X), 2 * X, X
    )


def test_let_bound_functions_are_inlined_with_what_they_see_where_they_are_written() -> None:
    x, a, b = var(), var("a"), var("b")
    f, g = Var("f"), Var("g")
    plus = Function((a,), op.call("Add", a, op.call("Neg", x)))
    twice = Function((b,), Call(f, (Call(f, (b,), checked_type=F32),), checked_type=F32))
    body = Let(f, plus, Let(g, twice, Call(g, (Call(g, (x,), checked_type=F32),), checked_type=F32)))
    assert_outputs(run(Function((x,), with_fields(body, checked_type=F32)), X), -3 * X)


def test_functions_in_tuples_and_as_arguments_are_inlined() -> None:
    x, a, b, f, pair = var(), var("a"), var("b"), Var("f"), Var("pair")
    negate, square = Function((a,), op.call("Neg", a)), Function((b,), op.call("Mul", b, b))
    called = Call(TupleGetItem(pair, 1), (Call(f, (x,), checked_type=F32),), checked_type=F32)
    apply = GlobalVar("apply")
    module = IRModule({apply: Function((f, pair, x), called)})
    main = Function((x,), Call(apply, (negate, Tuple((negate, square)), x), checked_type=F32))
    assert_outputs(run(main, X, module=module), X * X)


def test_let_bound_functions_are_called_in_bodies_of_operators() -> None:
    x, a, f = var(), var("a"), Var("f")
    i, go, state = Var("i", checked_type=INDEX), Var("go", checked_type=FLAG), var("state")
    body = Function((i, go, state), Tuple((go, Call(f, (state,), checked_type=F32))))
    loop = op.tuple_get(op.call("Loop", Constant(np.array(3)), op.absent(), x, body), 0)
    main = Function((x,), Let(f, Function((a,), op.call("Add", a, x)), loop, checked_type=F32))
    assert_outputs(run(main, X), 4 * X)


def test_functions_cannot_be_returned_or_call_themselves() -> None:
    x, a, f = var(), var("a"), Var("f")
    again = Function((a,), Call(f, (a,), checked_type=F32))
    returned, recursive = Tuple((x, again)), Let(f, again, Call(f, (x,), checked_type=F32))
    for body, message in (
        (returned, "a function is used as a value; ONNX has tensors only"),
        (recursive, "a local function calls itself; ONNX has no recursive functions"),
    ):
        with pytest.raises(UnsupportedModelError) as caught:
            to_onnx(Function((x,), body))
        assert caught.value.problem == message


@pytest.mark.parametrize("condition", [True, False])
def test_if_with_tuples_shared_values_and_constants(condition: bool) -> None:
    x, cond = var(), var("c", TensorType((), DType.BOOL))
    shared = op.call("Exp", x)
    two = Constant(np.full((2, 3), 2, np.float32))
    branches = (Tuple((shared, two)), Tuple((op.call("Mul", shared, two), x)))
    choice = If(cond, *branches, checked_type=branches[0].checked_type)
    body = op.call("Add", TupleGetItem(choice, 0), TupleGetItem(choice, 1))
    expected = np.exp(X) + 2 if condition else 2 * np.exp(X) + X
    assert_outputs(run(Function((cond, x), body), np.array(condition), X), expected)


def test_nested_ifs() -> None:
    x, cond = var(), var("c", TensorType((), DType.BOOL))
    inner = If(cond, op.call("Neg", x), x, checked_type=F32)
    outer = If(cond, inner, op.call("Abs", x), checked_type=F32)
    assert_outputs(run(Function((cond, x), outer), np.array(True), X), -X)
    assert_outputs(run(Function((cond, x), outer), np.array(False), X), np.abs(X))


def test_nodes_that_nothing_uses_are_left_out() -> None:
    """Also in branches, where onnxruntime cannot compile them if the conditions are constants."""
    x, unused, lost = var(), var("unused"), var("lost")
    yes = Constant(np.array(True))
    inner = If(yes, op.call("Relu", x), op.call("Add", x, x), checked_type=F32)
    branch = Let(unused, op.call("Exp", inner), op.call("Add", inner, x), checked_type=F32)
    outer = If(yes, branch, op.call("Relu", x), checked_type=F32)
    function = Function((x,), Let(lost, op.call("Erf", outer), op.call("Neg", outer), checked_type=F32))
    names = {node.op_type for node in nodes_of(to_onnx(function).graph)}
    assert names == {"If", "Relu", "Add", "Neg"}
    kernel = toolchain("onnxruntime").compile(function, Target("cpu -toolchain=onnxruntime -threads=1"))
    assert_outputs(kernel.run([X], [None]), -(np.maximum(X, 0) + X))


def test_placement_and_layout_operators_become_onnx() -> None:
    x = var()
    moved = op.call("layout_transform", x, domain="intarsia", src_layout="AB", dst_layout="BA")
    copied = op.call("device_copy", moved, domain="intarsia")
    model = to_onnx(Function((x,), copied))
    assert [node.op_type for node in model.graph.node] == ["Transpose", "Identity"]
    assert [(item.domain, item.version) for item in model.opset_import] == [("", 26)]
    assert_outputs(run(Function((x,), copied), X), X.T)


def test_optional_outputs_that_nobody_reads_are_left_out() -> None:
    x = Var("x", checked_type=TensorType((1, 1, 4, 4), DType.FLOAT32))
    pooled = op.call("MaxPool", x, outputs=2, kernel_shape=(2, 2))
    model = to_onnx(Function((x,), op.tuple_get(pooled, 0)))
    assert len(model.graph.node[0].output) == 1


def test_names_come_from_the_spans() -> None:
    x = var()
    neg = op.call("Neg", x, span=Span("m", "layer/1", "Neg"))
    assert to_onnx(Function((x,), neg)).graph.node[0].name == "layer/1"


def test_a_long_chain() -> None:
    x = var()
    body: Expr = x
    for _ in range(1200):
        body = Call(Op("Neg"), (body,), checked_type=F32)
    assert len(to_onnx(Function((x,), body)).graph.node) == 1200


class TestWeights:
    MODEL = model_of(
        "g (float[32,32] x) => (float[32,32] y) { a = Add(x, w)  y = Mul(a, s) }",
        w=np.arange(1024, dtype=np.float32).reshape(32, 32),
        s=np.float32(2),
    )

    def test_large_ones_stay_beside_the_model(self) -> None:
        main = from_onnx(self.MODEL)["main"]
        source = onnx_source(main)
        assert list(source.weights) == ["w"]
        model = onnx.load_model_from_string(source.model)
        stored = {item.name: item for item in model.graph.initializer}
        assert stored["w"].data_location == TensorProto.EXTERNAL
        assert {entry.key: entry.value for entry in stored["w"].external_data} == {
            "location": "constants",
            "offset": "0",
            "length": "4096",
        }
        assert stored["s"].data_location == TensorProto.DEFAULT

    def test_they_are_not_copied(self) -> None:
        module = from_onnx(self.MODEL.SerializeToString())
        first, second = (onnx_source(module["main"]).weights["w"] for _ in range(2))
        assert first is second

    def test_a_complete_model_has_them_inside(self) -> None:
        model = to_onnx(from_onnx(self.MODEL)["main"])
        x = np.ones((32, 32), np.float32)
        assert_outputs(onnxruntime_outputs(model, {"x": x}), *onnxruntime_outputs(self.MODEL, {"x": x}))

    @pytest.mark.parametrize(
        "dtype", [DType.INT4, DType.FLOAT8_E4M3FN, DType.BFLOAT16, DType.STRING, DType.BOOL]
    )
    def test_every_kind_of_constant(self, dtype: DType) -> None:
        array = np.ones(3000).astype(dtype.numpy)
        if dtype is DType.STRING:
            array = np.array(["text"] * 3000, object)
        model = to_onnx(Function((), Constant(array)))
        copied = from_onnx(model)["main"].body
        assert isinstance(copied, Call)
        assert isinstance(copied.args[0], Constant)
        assert copied.checked_type == TensorType((3000,), dtype)
        np.testing.assert_array_equal(copied.args[0].data, array)


class TestOtherOpsets:
    def test_where_nothing_changed_only_the_number_differs(self) -> None:
        x = var()
        model = to_onnx(Function((x,), op.call("Neg", x)), opset=13, ir_version=7)
        assert (model.ir_version, model.opset_import[0].version) == (7, 13)

    @pytest.mark.parametrize("opset", [14, 17, 21])
    def test_operators_are_converted_with_large_weights_beside(self, opset: int) -> None:
        main = from_onnx(TestWeights.MODEL)["main"]
        x = np.ones((32, 32), np.float32)
        model = to_onnx(main, opset=opset, ir_version=8)
        assert [item.name for item in model.graph.input] == ["x"]
        assert_outputs(
            onnxruntime_outputs(model, {"x": x}), *onnxruntime_outputs(TestWeights.MODEL, {"x": x})
        )

    def test_conversion_of_an_operator(self) -> None:
        x = var()
        total = op.call("ReduceMax", x, Constant(np.array([1])), keepdims=0)
        weight = Constant(np.ones((3, 1000), np.float32))
        main = Function((x,), Tuple((total, op.call("MatMul", x, weight))))
        model = to_onnx(main, opset=17, ir_version=8)
        assert [item.name for item in model.graph.input] == ["x"]
        assert_outputs(onnxruntime_outputs(model, {"x": X}), X.max(1), X @ weight.data)


def test_devices_are_dropped_with_a_warning() -> None:
    cpu, mock = VirtualDevice(DeviceType.CPU, 0), VirtualDevice(DeviceType.MOCK, 1)
    x = with_fields(var(), virtual_device=cpu)
    there = with_fields(op.call("Neg", device_copy(x, mock)), virtual_device=mock)
    placed = Function((x,), device_copy(there, cpu))
    with pytest.warns(DroppedDevicesWarning, match="ONNX names no devices: cpu:0, mock:1 are dropped"):
        model = to_onnx(placed)
    assert_outputs(onnxruntime_outputs(model, {"x": X}), -X)


def test_one_device_of_the_cpu_is_exported_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    x = with_fields(var(), virtual_device=VirtualDevice(DeviceType.CPU, 0))
    to_onnx(IRModule.from_expr(Function((x,), op.call("Neg", x))))
    assert not [item for item in recwarn if item.category is DroppedDevicesWarning]
