"""What a model becomes, whichever of ONNX's ways it is written in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tests.onnx_models import model_of, onnxruntime_outputs, reference_outputs, saved

from intarsia.frontend.onnx import from_onnx, to_onnx
from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    If,
    IRModule,
    Span,
    TensorType,
    Tuple,
    Type,
    post_order,
)
from intarsia.op import verify
from intarsia.support.errors import InvalidModelError

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
NEG = "g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }"


def exported(model: Any, **options: Any) -> Any:
    """The model after import, verification and export; onnx's checker accepts it."""
    module = from_onnx(model, **options)
    verify(module)
    result = to_onnx(module["main"], module)
    onnx.checker.check_model(result, full_check=True)
    return result


def assert_same_outputs(model: Any, feeds: dict[str, Any]) -> None:
    """The exported model computes on two engines what the original does in the reference evaluator."""
    after = exported(model)
    expected = reference_outputs(model, feeds)
    for outputs in (reference_outputs(after, feeds), onnxruntime_outputs(after, feeds)):
        assert len(outputs) == len(expected)
        for found, wanted in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


def main_of(model: Any, **options: Any) -> Function:
    return from_onnx(model, **options)["main"]


def constants_of(root: Expr) -> list[Constant]:
    return [node for node in post_order(root) if isinstance(node, Constant)]


def operators_of(root: Expr) -> list[str]:
    return [str(node.op) for node in post_order(root) if isinstance(node, Call)]


class TestWhatAModelBecomes:
    def test_a_function_of_the_inputs(self) -> None:
        module = from_onnx(model_of(NEG))
        main = module["main"]
        f32 = TensorType((2, 3), DType.FLOAT32)
        assert [(param.name, param.checked_type) for param in main.params] == [("x", f32)]
        assert main.result_type == f32
        assert main.attrs["output_names"] == ("y",)
        assert module.attrs["name"] == "g"

    def test_spans_are_nodes(self) -> None:
        main = main_of(model_of("g (float[2] x) => (float[2] y) { [first] a = Neg(x)  y = Abs(a) }"))
        spans = [node.span for node in post_order(main) if isinstance(node, Call)]
        assert spans == [Span("g", "first", "Neg"), Span("g", "y", "Abs")]

    def test_spans_of_a_file_name_the_file(self, tmp_path: Path) -> None:
        main = main_of(saved(model_of(NEG), tmp_path / "model.onnx"))
        assert main.body.span == Span("model.onnx", "y", "Neg")

    @pytest.mark.parametrize("given", ["path", "text", "bytes", "bytearray", "message"])
    def test_every_way_to_give_a_model(self, tmp_path: Path, given: str) -> None:
        weight = np.arange(1024, dtype=np.float32).reshape(32, 32)
        model = model_of("g (float[32,32] x) => (float[32,32] y) { y = Add(x, w) }", w=weight)
        path = saved(model, tmp_path / "model.onnx")
        data = path.read_bytes()
        ways = {
            "path": path,
            "text": str(path),
            "bytes": data,
            "bytearray": bytearray(data),
            "message": model,
        }
        (constant,) = constants_of(main_of(ways[given]))
        np.testing.assert_array_equal(constant.data, weight)
        assert constant.span is not None
        assert constant.span.node == "w"

    def test_the_given_message_is_not_changed(self) -> None:
        model = model_of(
            "g (float[N,1,3] x) => (float[N,3] y) { a = ai.onnx.Add(x, w)  y = Squeeze <axes = [1]> (a) }",
            opset=11,
            imports='"ai.onnx": 11',
            w=np.ones((1, 1, 3), np.float32),
        )
        sparse = helper.make_sparse_tensor(
            numpy_helper.from_array(np.ones(1, np.float32), "s"), numpy_helper.from_array(np.array([0])), [2]
        )
        model.graph.sparse_initializer.append(sparse)
        before = model.SerializeToString(deterministic=True)
        from_onnx(model, shapes={"x": (2, 1, 3)})
        assert model.SerializeToString(deterministic=True) == before

    def test_weights_of_a_file_are_aligned(self, tmp_path: Path) -> None:
        model = model_of(
            "g (float[32,32] x) => (float[32,32] y) { y = Add(x, w) }", w=np.ones((32, 32), "f4")
        )
        for source in (saved(model, tmp_path / "model.onnx"), model, model.SerializeToString()):
            (constant,) = constants_of(main_of(source))
            assert constant.data.ctypes.data % 64 == 0

    @pytest.mark.parametrize("is_read_only", [False, True])
    def test_memory_that_the_caller_may_write_to_is_not_shared(self, is_read_only: bool) -> None:
        model = model_of(
            "g (float[32,32] x) => (float[32,32] y) { y = Add(x, w) }", w=np.ones((32, 32), "f4")
        )
        for shift in range(64):  # one of the shifts has the weight aligned
            backing = bytearray(bytes(shift) + model.SerializeToString())
            given = memoryview(backing)[shift:]
            (constant,) = constants_of(main_of(given.toreadonly() if is_read_only else given))
            given[:] = bytes(len(given))
            np.testing.assert_array_equal(constant.data, np.ones((32, 32)))

    def test_constants_are_read_only(self) -> None:
        model = model_of(
            "g (float[2] x) => (float[2] y) { c = Constant <value_floats = [1.0, 2.0]> ()"
            " a = Add(x, w)  s = ReduceSum <keepdims = 0> (big)  d = Add(a, s)  y = Add(d, c) }",
            w=np.ones(2, np.float32),
            big=np.ones((32, 32), np.float32),
        )
        for given in (model, model.SerializeToString()):
            found = constants_of(main_of(given))
            assert len(found) == 3
            assert not any(constant.data.flags.writeable for constant in found)

    def test_external_weights(self, tmp_path: Path) -> None:
        weight = np.arange(1024, dtype=np.float32).reshape(32, 32)
        model = model_of("g (float[32,32] x) => (float[32,32] y) { y = Add(x, w) }", w=weight)
        saved(model, tmp_path / "model.onnx", save_as_external_data=True, size_threshold=0)
        (constant,) = constants_of(main_of(tmp_path / "model.onnx"))
        np.testing.assert_array_equal(constant.data, weight)

    def test_input_ranges(self) -> None:
        model = model_of("g (int64[2] x) => (int64[2] y) { y = Neg(x) }")
        model.metadata_props.add(key="intarsia.input_range.x", value="0,30522")
        model.metadata_props.add(key="intarsia.input_range.other", value="0,1")
        assert main_of(model).attrs["input_ranges"] == (("x", 0, 30522),)

    def test_input_range_that_is_none(self) -> None:
        model = model_of(NEG)
        model.metadata_props.add(key="intarsia.input_range.x", value="many")
        with pytest.raises(InvalidModelError, match=r"'intarsia\.input_range\.x' is 'many'"):
            from_onnx(model)


class TestInterface:
    def test_initializers_that_are_inputs(self) -> None:
        model = model_of(
            "g (float[2,3] x, float[2,3] w) => (float[2,3] y) { y = Add(x, w) }", opset=9, ir_version=3, w=X
        )
        assert [param.name for param in main_of(model).params] == ["x"]
        assert_same_outputs(model, {"x": X})

    def test_first_ir_versions_have_opset_1(self) -> None:
        model = model_of("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", ir_version=2)
        del model.opset_import[:]
        assert operators_of(main_of(model)) == ["Relu"]

    def test_output_that_is_an_input(self) -> None:
        assert_same_outputs(model_of("g (float[2,3] x) => (float[2,3] x) { }"), {"x": X})
        assert_same_outputs(
            model_of("g (float[2,3] x) => (float[2,3] y, float[2,3] x) { y = Neg(x) }"), {"x": X}
        )

    def test_output_that_is_an_initializer(self) -> None:
        model = model_of("g (float[2,3] x) => (float[2,3] w) { }", w=X)
        assert [item.name for item in exported(model).graph.output] == ["w"]
        assert_same_outputs(model, {"x": X})

    def test_one_value_returned_twice(self) -> None:
        model = model_of("g (float[2,3] x) => (float[2,3] y, float[2,3] y) { y = Neg(x) }")
        main = main_of(model)
        assert isinstance(main.body, Tuple)
        assert main.body.fields[0] is main.body.fields[1]
        assert main.attrs["output_names"] == ("y", "y_1")
        assert_same_outputs(model, {"x": X})

    def test_empty_graph(self) -> None:
        assert exported(model_of("g () => () { }")).graph.node == []

    def test_unused_input_stays(self) -> None:
        model = model_of("g (float[2,3] x, float[N] unused) => (float[2,3] y) { y = Neg(x) }")
        assert [item.name for item in exported(model).graph.input] == ["x", "unused"]

    def test_names_that_collide_with_ours(self) -> None:
        model = model_of(
            "g (float[2,3] x) => (float[2,3] y) { [y] Neg = Neg(x)  [y] x_1 = Abs(Neg)  [x] y = Add(x_1, x) }"
        )
        assert_same_outputs(model, {"x": X})

    def test_nodes_in_any_order(self) -> None:
        model = model_of("g (float[2,3] x) => (float[2,3] y) { y = Neg(b)  b = Exp(a)  a = Abs(x) }")
        assert operators_of(main_of(model)) == ["Abs", "Exp", "Neg"]


class TestOptionalValues:
    def test_absent_input_in_the_middle(self) -> None:
        model = model_of("g (float[2,3] x) => (float[2,3] y) { y = Clip(x, , high) }", high=np.float32(1))
        call = main_of(model).body
        assert isinstance(call, Call)
        assert call.args[1].checked_type is not None
        assert str(call.args[1].checked_type) == "()"
        assert_same_outputs(model, {"x": X})

    def test_absent_inputs_at_the_end(self) -> None:
        model = model_of("g (float[2,3] x) => (float[2,3] y) { y = Clip(x, low, ) }", low=np.float32(0))
        assert len(exported(model).graph.node[0].input) == 2

    def test_absent_outputs(self) -> None:
        weights = {"w": np.ones((1, 16, 3), np.float32), "r": np.ones((1, 16, 4), np.float32)}
        model = model_of(
            "g (float[5,1,3] x, float[1,1,4] h) => (float[1,1,4] c) {"
            " , , c = LSTM <hidden_size = 4> (x, w, r, , , h) }",
            **weights,  # type: ignore[arg-type]  # these are weights, none of the named options
        )
        feeds = {"x": np.ones((5, 1, 3), np.float32), "h": np.ones((1, 1, 4), np.float32)}
        assert_same_outputs(model, feeds)

    def test_node_without_a_used_output_is_dropped(self) -> None:
        model = model_of("g (float[2,3] x) => (float[2,3] y) { unused = Exp(x)  y = Neg(x) }")
        assert operators_of(main_of(model)) == ["Neg"]


class TestShapes:
    MODEL = model_of("g (float[N,3] x, float[N] z) => (float[N,3] y) { y = Neg(x) }")

    def types(self, **shapes: tuple[int | str, ...]) -> list[str]:
        main = main_of(self.MODEL, shapes=shapes)
        types: list[Type | None] = [*(param.checked_type for param in main.params), main.result_type]
        return [str(type_).removeprefix("Tensor").removesuffix(", float32]") + "]" for type_ in types]

    def test_symbols_are_kept(self) -> None:
        assert self.types() == ["[(N, 3)]", "[(N,)]", "[(N, 3)]"]

    def test_a_symbol_fixed_once_is_fixed_everywhere(self) -> None:
        assert self.types(x=(4, 3)) == ["[(4, 3)]", "[(4,)]", "[(4, 3)]"]

    def test_a_symbol_may_be_renamed(self) -> None:
        assert self.types(z=("batch",)) == ["[(batch, 3)]", "[(batch,)]", "[(batch, 3)]"]

    def test_unknown_rank(self) -> None:
        model = model_of("g (float x) => (float y) { y = Neg(x) }")
        for value in (model.graph.input[0], model.graph.output[0]):
            value.type.tensor_type.ClearField("shape")
        assert main_of(model).result_type == TensorType(None, DType.FLOAT32)
        assert main_of(model, shapes={"x": (2, "M")}).result_type is not None
        assert str(main_of(model, shapes={"x": (2, "M")}).result_type) == "Tensor[(2, M), float32]"

    def test_stale_declared_shapes_are_not_believed(self) -> None:
        model = model_of("g (float[N,3] x) => (float[1,3] y) <float[1,3] a> { a = Neg(x)  y = Neg(a) }")
        assert str(main_of(model).result_type) == "Tensor[(N, 3), float32]"

    def test_declared_shapes_fill_in_what_inference_does_not_find(self) -> None:
        model = model_of("g (float[2,3] x, int64[K] s) => (float[A,6] y) { y = Reshape(x, s) }")
        assert str(main_of(model).result_type) == "Tensor[(A, ?), float32]"

    def test_declared_numbers_are_not_believed(self) -> None:
        model = model_of("g (float[2,2] x) => (int64[2,3] y) <int64[2,3] a> { a = NonZero(x)  y = Neg(a) }")
        assert str(main_of(model).result_type) == "Tensor[(2, ?), int64]"
        (found,) = onnxruntime_outputs(exported(model), {"x": np.ones((2, 2), np.float32)})
        np.testing.assert_array_equal(found, [[0, 0, -1, -1], [0, -1, 0, -1]])

    def test_hints_of_the_main_graph_are_not_used_in_nested_ones(self) -> None:
        model = model_of(
            "g (bool c, float[2,3] x, int64[K] s) => (float[a,b] y, float[6,1] late) {"
            " y = If (c) <"
            "  then_branch = t () => (float[p,q] inner) { inner = Reshape(x, s) },"
            "  else_branch = e () => (float[p,q] other) { other = Neg(x) }>"
            " late = Reshape(x, s) }"
        )
        main = main_of(model)
        branch = next(node for node in post_order(main) if isinstance(node, If)).true_branch
        assert str(branch.checked_type) == "Tensor[(p, q), float32]"


class TestConstants:
    @pytest.mark.parametrize(
        ("attribute", "value", "expected"),
        [
            ("value", numpy_helper.from_array(X), X),
            ("value_float", 1.5, np.float32(1.5)),
            ("value_floats", [1.0, 2.0], np.array([1, 2], np.float32)),
            ("value_int", 3, np.int64(3)),
            ("value_ints", [1, 2], np.array([1, 2])),
            ("value_string", "text", np.array("text", object)),
            ("value_strings", ["a", "bé"], np.array(["a", "bé"], object)),
            (
                "sparse_value",
                helper.make_sparse_tensor(
                    numpy_helper.from_array(np.array([1, 2], np.float32)),
                    numpy_helper.from_array(np.array([0, 5])),
                    [2, 3],
                ),
                np.array([[1, 0, 0], [0, 0, 2]], np.float32),
            ),
        ],
    )
    def test_constant_nodes(self, attribute: str, value: object, expected: np.ndarray[Any, Any]) -> None:
        graph = onnx.GraphProto(name="g")
        graph.node.append(helper.make_node("Constant", [], ["y"], **{attribute: value}))
        graph.output.add(name="y")
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        (constant,) = constants_of(main_of(model))
        np.testing.assert_array_equal(constant.data, expected)
        assert constant.checked_type == TensorType.of(np.asarray(expected))
        assert constant.span == Span("g", "y", "Constant")
        assert [item.name for item in to_onnx(main_of(model)).graph.output] == ["y"]

    @pytest.mark.parametrize("indices", [[0, 5], [[0, 0], [1, 2]]])
    def test_sparse_initializers(self, indices: Any) -> None:
        model = model_of("g (float[2,3] x) => (float[2,3] y) { y = Add(x, w) }")
        values = numpy_helper.from_array(np.array([1, 2], np.float32), "w")
        sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(indices), "i"), [2, 3])
        model.graph.sparse_initializer.append(sparse)
        (outputs,) = onnxruntime_outputs(exported(model), {"x": X})
        np.testing.assert_array_equal(outputs, X + np.array([[1, 0, 0], [0, 0, 2]]))

    def test_string_weights(self) -> None:
        weight = np.array(["a", "bé"], object)
        model = model_of("g (string[2] x) => (bool[2] y) { y = Equal(x, w) }", w=weight, opset=19)
        (constant,) = constants_of(main_of(model))
        assert constant.data.tolist() == ["a", "bé"]


class TestControlFlow:
    IF = """g (bool c, float[2,3] x) => (float[2,3] y, float[2,3] z) {
        shared = Exp(x)
        y, z = If (c) <
            then_branch = t () => (float[2,3] a, float[2,3] b) { a = Neg(shared)  b = Abs(x) },
            else_branch = e () => (float[2,3] a2, float[2,3] b2) { a2 = Identity(shared)  b2 = Identity(x) }>
    }"""

    @pytest.mark.parametrize("condition", [True, False])
    def test_if(self, condition: bool) -> None:
        model = model_of(self.IF)
        assert any(isinstance(node, If) for node in post_order(main_of(model)))
        assert_same_outputs(model, {"c": np.array(condition), "x": X})

    def test_branches_of_different_types(self) -> None:
        model = model_of(
            "g (bool c, float[2] x) => (float[2] y) { y = If (c) <"
            " then_branch = t () => (float[2] a) { a = Neg(x) },"
            " else_branch = e () => (int64[2] b) { b = Cast <to = 7> (x) }> }"
        )
        with pytest.raises(InvalidModelError, match="the branches of an If return"):
            from_onnx(model)

    LOOP = """g (int64 n, float[2] x) => (float[2] y, float[k,2] rows) {
        y, rows = Loop (n, always, x) <body = b (int64 i, bool go, float[2] state)
            => (bool again, float[2] next, float[2] row) {
            again = Identity(go)  next = Add(state, x)  row = Neg(next) }>
    }"""

    def test_loop(self) -> None:
        model = model_of(self.LOOP, always=np.array(True))
        main = main_of(model)
        assert str(main.result_type) == "(Tensor[(2,), float32], Tensor[(k, 2), float32])"
        assert_same_outputs(model, {"n": np.array(3), "x": X[0, :2]})

    @pytest.mark.parametrize("again", ["Identity", "Not"])
    def test_loop_without_a_condition_ignores_that_of_its_body(self, again: str) -> None:
        model = model_of(
            "g (int64 n, float[1] x) => (float[1] y) { y = Loop (n, , x) <body = b (int64 i, bool go, "
            f"float[1] s) => (bool again, float[1] t) {{ again = {again}(go)  t = Add(s, s) }}> }}"
        )
        after, feeds = exported(model), {"n": np.array(3), "x": np.ones(1, np.float32)}
        for outputs in (reference_outputs(after, feeds), onnxruntime_outputs(after, feeds)):
            np.testing.assert_array_equal(outputs[0], [8])

    def test_loop_without_a_trip_count(self) -> None:
        model = model_of(
            "g (bool c, float[1] x, float[1] end) => (float[1] y) { y = Loop (, c, x) <body = b (int64 i, "
            "bool go, float[1] s) => (bool again, float[1] t) {"
            " t = Add(s, s)  less = Less(t, end)  again = Squeeze(less) }> }"
        )
        feeds = {"c": np.array(True), "x": np.ones(1, np.float32), "end": np.full(1, 9, np.float32)}
        assert_same_outputs(model, feeds)
        np.testing.assert_array_equal(onnxruntime_outputs(exported(model), feeds)[0], [16])

    SCAN = """g (float[2] start, float[4,2] xs) => (float[2] last, float[4,2] rows) {
        last, rows = Scan <num_scan_inputs = 1,
            body = b (float[2] s, float[2] x) => (float[2] t, float[2] r) { t = Add(s, x)  r = Identity(t) }>
            (start, xs)
    }"""

    def test_scan(self) -> None:
        feeds = {"start": X[0, :2], "xs": np.ones((4, 2), np.float32)}
        assert_same_outputs(model_of(self.SCAN), feeds)

    def test_parameters_of_a_scan_need_no_types(self) -> None:
        """Onnx's own definition of LinearAttention has none."""
        text = self.SCAN.replace("num_scan_inputs = 1", "num_scan_inputs = 1, scan_input_axes = [-1]")
        model = model_of(text.replace("float[4,2] xs", "float[2,4] xs"))
        (body,) = (each.g for each in model.graph.node[0].attribute if each.name == "body")
        for value in (*body.input, *body.output):
            value.ClearField("type")
        (scan,) = (
            expr for expr in post_order(from_onnx(model)["main"]) if isinstance(expr, Call) and expr.args[2:]
        )
        step = scan.args[-1]
        assert isinstance(step, Function)
        assert [param.checked_type for param in step.params] == [TensorType((2,), DType.FLOAT32)] * 2


class TestFunctionsOfTheModel:
    def test_they_are_inlined(self) -> None:
        model = model_of(
            'g (float[2,3] x) => (float[2,3] y) { y = my.Square(x) } <opset_import: ["": 17], domain: "my"> '
            "Square (a) => (b) { b = Mul(a, a) }",
            imports='"my": 1',
        )
        assert operators_of(main_of(model)) == ["Mul"]
        assert_same_outputs(model, {"x": X})

    def test_attributes_are_passed(self) -> None:
        model = model_of(
            "g (float[2,3] x) => (float[2,3] y) { y = my.Leaky <slope = 0.5> (x) } "
            '<opset_import: ["": 17], domain: "my"> '
            "Leaky <slope> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }",
            imports='"my": 1',
        )
        (outputs,) = onnxruntime_outputs(exported(model), {"x": X})
        np.testing.assert_array_equal(outputs, np.where(X < 0, X / 2, X))

    def test_a_function_of_another_opset(self) -> None:
        model = model_of(
            'g (float[1,3] x) => (float[3] y) { y = my.Flat(x) } <opset_import: ["": 11], domain: "my"> '
            "Flat (a) => (b) { b = Squeeze <axes = [0]> (a) }",
            imports='"my": 1',
        )
        (outputs,) = onnxruntime_outputs(exported(model), {"x": X[:1]})
        np.testing.assert_array_equal(outputs, X[0])

    def test_an_unknown_operator_inside_names_the_function(self) -> None:
        model = model_of(
            'g (float[2] x) => (float[2] y) { y = my.F(x) } <opset_import: ["": 17], domain: "my"> '
            "F (a) => (b) { b = Mull(a, a) }",
            imports='"my": 1',
        )
        with pytest.raises(InvalidModelError, match="unknown operator 'Mull'") as caught:
            from_onnx(model)
        assert caught.value.__notes__[-1] == "in the model's function 'F' of the domain 'my'"


def test_the_module_is_whole() -> None:
    module = from_onnx(model_of(TestControlFlow.IF))
    assert isinstance(module, IRModule)
    verify(module)


def test_data_of_an_unknown_element_type() -> None:
    model = model_of(NEG, w=X)
    model.graph.initializer[0].data_type = 99
    with pytest.raises(InvalidModelError, match="unknown ONNX element type 99"):
        from_onnx(model)
