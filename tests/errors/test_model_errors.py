"""What a user reads when a model cannot be imported or exported: exact texts and exit codes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.onnx_models import model_of

from intarsia import op
from intarsia.frontend.onnx import from_onnx, to_onnx
from intarsia.ir import (
    Attrs,
    Call,
    DType,
    Function,
    GlobalVar,
    IRModule,
    Op,
    TensorType,
    Tuple,
    TupleType,
    Var,
)
from intarsia.support.errors import IntarsiaError, InvalidModelError, UnsupportedModelError, UsageError

F32 = TensorType((2, 3), DType.FLOAT32)
F64 = TensorType((2, 3), DType.FLOAT64)
NEG = "g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }"
ADD = "g (float[32,32] x) => (float[32,32] y) { y = Add(x, w) }"
W = np.ones((32, 32), np.float32)


def refused(kind: type[IntarsiaError], act: Callable[[], object], text: str) -> None:
    with pytest.raises(IntarsiaError) as caught:
        act()
    assert type(caught.value) is kind
    assert str(caught.value) == text
    assert caught.value.exit_code == (2 if issubclass(kind, UsageError) else 3)


def refused_model(kind: type[IntarsiaError], model: Any, text: str) -> None:
    refused(kind, lambda: from_onnx(model), text)


class TestFiles:
    @pytest.mark.parametrize(
        ("cut", "text"),
        [
            (0, "the model is empty: it has no bytes"),
            (1, "the model is truncated: it ends at byte 1, inside a number"),
            (20, "the model is truncated: it ends at byte 20, but a field reaches to byte 4179"),
            (100, "the model is truncated: it ends at byte 100, but a field reaches to byte 4179"),
            (4178, "the model is truncated: it ends at byte 4178, but a field reaches to byte 4179"),
        ],
    )
    def test_truncated(self, tmp_path: Path, cut: int, text: str) -> None:
        data = model_of(ADD, w=W).SerializeToString()
        path = tmp_path / "m.onnx"
        path.write_bytes(data[:cut])
        advice = "help: copy or download the file again"
        refused_model(InvalidModelError, path, f"{text}\n  in {path}\n{advice}")
        refused_model(InvalidModelError, data[:cut], f"{text}\n{advice}")

    def test_truncated_between_two_fields(self) -> None:
        data = model_of(ADD, w=W).SerializeToString()[:4179]
        refused_model(InvalidModelError, data, "the model does not say its opset: opset_import is empty")

    def test_wrong_magic(self, tmp_path: Path) -> None:
        path = tmp_path / "m.onnx"
        path.write_bytes(b"\x7fELF\x02\x01\x01\x00")
        refused_model(
            InvalidModelError,
            path,
            f"not an ONNX model: byte 0 starts no field of a protobuf message\n  in {path}\n"
            "help: pass an .onnx file, or its bytes",
        )

    def test_another_protobuf_message(self) -> None:
        data = helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0]).SerializeToString()
        refused_model(
            InvalidModelError,
            data,
            "not an ONNX model: the bytes are no ModelProto message\nhelp: pass an .onnx file, or its bytes",
        )

    def test_model_without_a_graph(self) -> None:
        refused_model(
            InvalidModelError,
            helper.make_opsetid("", 17).SerializeToString(),
            "not an ONNX model: there is no graph in it\nhelp: pass an .onnx file, or its bytes",
        )

    def test_graph_that_is_no_message(self) -> None:
        refused_model(
            InvalidModelError,
            b"\x08\x08\x3a\x02\x0a\x05",
            "the model is truncated: it ends at byte 6, but a field reaches to byte 11\n"
            "help: copy or download the file again",
        )

    def test_a_name_that_is_no_text(self) -> None:
        data = model_of("g (float[2,3] abc) => (float[2,3] y) { y = Neg(abc) }").SerializeToString()
        refused_model(
            InvalidModelError,
            data.replace(b"abc", b"a\xffc"),
            "a ValueInfoProto of the model holds b'a\\xffc', which is no UTF-8 text\n"
            "help: copy or download the file again",
        )

    def test_missing(self, tmp_path: Path) -> None:
        path = tmp_path / "none.onnx"
        refused_model(UsageError, path, f"there is no file {path}\nhelp: check the path")

    def test_folder(self, tmp_path: Path) -> None:
        refused_model(UsageError, str(tmp_path), f"{tmp_path} is a folder, expected an ONNX file")

    def test_unreadable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr(Path, "open", refuse)
        refused_model(
            UsageError, tmp_path / "m.onnx", f"cannot read {tmp_path / 'm.onnx'}: permission denied"
        )

    def test_neither_path_nor_model(self) -> None:
        refused_model(UsageError, 42, "a model is a path, bytes or an onnx.ModelProto, not int")


class TestOperators:
    def test_unknown(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[2,3] x) => (float[2,3] y) { [first] y = Softmaxx(x) }"),
            "unknown operator 'Softmaxx': ONNX opset 17 has no such operator\n  at node 'first'\n"
            "help: did you mean Softmax or LogSoftmax?",
        )

    def test_unknown_without_a_near_one(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[2,3] x) => (float[2,3] y) { y = Zzyzx(x) }"),
            "unknown operator 'Zzyzx': ONNX opset 17 has no such operator\n  at node 'y'\n"
            "help: check the exporter that wrote the model",
        )

    def test_newer_than_the_opset(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[2,3] x) => (float[2,3] y) { y = Gelu(x) }"),
            "unknown operator 'Gelu': ONNX opset 17 has no such operator\n  at node 'y'\n"
            "help: Gelu belongs to version 20 and newer of the opset",
        )

    def test_deprecated(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[1,1,2,2] x, float[4] s) => (float[1,1,a,b] y) { y = Upsample(x, s) }"),
            "unknown operator 'Upsample': ONNX opset 17 has no such operator\n  at node 'y'\n"
            "help: Upsample belongs to versions 1 to 9 of the opset",
        )

    def test_unknown_inside_a_branch(self) -> None:
        refused_model(
            InvalidModelError,
            model_of(
                "g (bool c, float[2] x) => (float[2] y) {"
                " y = If (c) <then_branch = t () => (float[2] a) { a = Ned(x) },"
                " else_branch = e () => (float[2] b) { b = Neg(x) }> }"
            ),
            "unknown operator 'Ned': ONNX opset 17 has no such operator\n  at node 'a'\n"
            "help: did you mean Neg?",
        )

    def test_unknown_domain(self) -> None:
        refused_model(
            UnsupportedModelError,
            model_of("g (float[2,3] x) => (float[2,3] y) { y = acme.FastGelu(x) }", imports='"acme": 1'),
            "node 'y' uses the operator 'FastGelu' of the domain 'acme', which is not one of ONNX's, "
            "and no installed package declares it\n"
            "help: install the package that registers it, or export the model with ONNX's own operators",
        )

    def test_undeclared_domain(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[2,3] x) => (float[2,3] y) { y = ai.onnx.ml.Scaler(x) }"),
            "node 'y' uses the domain 'ai.onnx.ml', which the model does not import",
        )

    def test_no_opset(self) -> None:
        model = model_of(NEG)
        del model.opset_import[:]
        refused_model(InvalidModelError, model, "the model does not say its opset: opset_import is empty")

    def test_opset_below_one(self) -> None:
        refused_model(
            InvalidModelError,
            model_of(NEG, opset=0),
            "the model has version 0 of the domain '', expected 1 or more",
        )

    def test_opset_of_the_future(self) -> None:
        newest = onnx.defs.onnx_opset_version()
        refused_model(
            UnsupportedModelError,
            model_of(NEG, opset=999),
            f"the model has the opset 999; the newest that the installed onnx supports is {newest}\n"
            "help: export the model at opset 26, or install a newer onnx",
        )

    def test_bad_attribute(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[2,3] x) => (float[2,3] y) { y = Softmax <axs: int = 1> (x) }"),
            "operator 'Softmax' has no attribute 'axs'\n  at node 'y' (Softmax) of g\n"
            "help: its attributes: axis",
        )

    @pytest.mark.parametrize("name", ["outputs", "span", "name", "domain"])
    def test_attribute_named_as_a_parameter_of_ours(self, name: str) -> None:
        refused_model(
            InvalidModelError,
            model_of(f"g (float[2,3] x) => (float[2,3] y) {{ y = Neg <{name}: int = 1> (x) }}"),
            f"operator 'Neg' has no attribute '{name}'\n  at node 'y' (Neg) of g\nhelp: its attributes: none",
        )

    def test_attribute_of_a_wrong_kind(self) -> None:
        refused_model(
            InvalidModelError,
            model_of('g (float[2,3] x) => (float[2,3] y) { y = LeakyRelu <alpha: string = "a"> (x) }'),
            "operator 'LeakyRelu' cannot be applied to (Tensor[(2, 3), float32]): Mismatched attribute type "
            "in ' : alpha'. Expected: 'FLOAT', actual: 'STRING'\n  at node 'y' (LeakyRelu) of g",
        )

    def test_value_that_onnx_never_ends_on(self) -> None:
        refused_model(
            InvalidModelError,
            model_of('g (float x) => (float y) { y = Einsum <equation = "%>"> (x) }', opset=28),
            "operator 'Einsum' has the equation '%>', expected one such as 'ij,jk->ik'\n  at node 'y'",
        )

    def test_argument_of_a_wrong_element_type(self) -> None:
        x, y = Var("x", checked_type=F32), Var("y", checked_type=F64)
        refused(
            InvalidModelError,
            lambda: op.call("Add", x, y),
            "operator 'Add' has an argument 'B' of float64, expected float32 as for the arguments before it\n"
            "help: insert a Cast in the model",
        )

    def test_element_type_that_the_operator_does_not_take(self) -> None:
        with pytest.raises(InvalidModelError, match=r"^operator 'Relu' cannot be applied to"):
            from_onnx(model_of("g (string[2] x) => (string[2] y) { y = Relu(x) }"))

    def test_shapes_that_do_not_fit(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[2,3] x, float[4,5] z) => (float[2,5] y) { y = MatMul(x, z) }"),
            "operator 'MatMul' cannot be applied to (Tensor[(2, 3), float32], Tensor[(4, 5), float32]): "
            "Incompatible dimensions for matrix multiplication\n  at node 'y' (MatMul) of g",
        )


class TestGraph:
    def test_cycle(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[2] x) => (float[2] y) { [one] a = Add(x, b)  [two] b = Neg(a)  y = Neg(b) }"),
            "the graph has a cycle: 'one' -> 'two' -> 'one'\n"
            "help: an ONNX graph is acyclic: use Loop for repetition",
        )

    def test_a_value_that_nothing_produces(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[2] x) => (float[2] y) { y = Add(x, nothing) }"),
            "node 'y' reads 'nothing', which nothing produces",
        )

    def test_an_output_that_nothing_produces(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[2] x) => (float[2] y) { z = Neg(x) }"),
            "the graph's output 'y' is produced by no node",
        )

    def test_a_value_produced_twice(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[2] x) => (float[2] y) { [one] y = Neg(x)  [two] y = Abs(x) }"),
            "two nodes produce 'y': 'one' (Neg) and 'two' (Abs)",
        )

    def test_two_inputs_of_one_name(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[2] x, float[2] x) => (float[2] y) { y = Neg(x) }"),
            "the model has two inputs named 'x'",
        )

    @pytest.mark.parametrize("given", ["message", "bytes"])
    def test_two_initializers_of_one_name(self, given: str) -> None:
        model = model_of(ADD, w=W)
        model.graph.initializer.append(model.graph.initializer[0])
        refused_model(
            InvalidModelError,
            model if given == "message" else model.SerializeToString(),
            "the model has two initializers named 'w'",
        )

    def test_declared_element_type_contradicts(self) -> None:
        refused_model(
            InvalidModelError,
            model_of("g (float[2] x) => (double[2] y) { y = Neg(x) }"),
            "'y' is declared as Tensor[(2,), float64], but is computed as Tensor[(2,), float32]\n"
            "  at node 'y' (Neg) of g",
        )

    def test_map_type(self) -> None:
        model = model_of(NEG)
        model.graph.input[0].type.Clear()
        model.graph.input[0].type.map_type.key_type = TensorProto.INT64
        refused_model(
            UnsupportedModelError,
            model,
            "ONNX values of map type are not supported\n  at the value 'x'\n"
            "help: give the model tensors: DictVectorizer and CastMap stay outside",
        )

    def test_recursive_function_of_the_model(self) -> None:
        model = model_of(
            'g (float[2] x) => (float[2] y) { y = my.F(x) } <opset_import: ["": 17, "my": 1], domain: "my"> '
            "F (a) => (b) { b = my.F(a) }",
            imports='"my": 1',
        )
        refused_model(
            InvalidModelError,
            model,
            "the model's own functions cannot be inlined: Cycle detected in model-local function references: "
            "my::F -> my::F. Model-local functions must not be recursive.",
        )

    @pytest.mark.parametrize(
        ("node", "text"),
        [
            (helper.make_node("If", ["c"], ["y"]), "operator 'If' has no then_branch"),
            (helper.make_node("If", [], ["y"]), "operator 'If' has 0 inputs, expected its condition"),
            (
                helper.make_node("Loop", ["", ""], ["y"]),
                "operator 'Loop' needs a body: a function as its last argument",
            ),
            (
                helper.make_node("Constant", [], ["y"]),
                "a Constant node needs one attribute that holds its value, found none",
            ),
        ],
    )
    def test_incomplete_node(self, node: Any, text: str) -> None:
        model = model_of("g (bool c) => (float[2] y) { y = Identity(c) }")
        model.graph.node[0].CopyFrom(node)
        refused_model(InvalidModelError, model, f"{text}\n  at node 'y' ({node.op_type}) of g")


class TestExternalData:
    def model(self, folder: Path, location: str, **entries: str) -> Path:
        """A model whose weight w stands in another file."""
        model = model_of(ADD, w=W)
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **entries}.items():
            tensor.external_data.add(key=key, value=value)
        path = folder / "m.onnx"
        path.write_bytes(model.SerializeToString())
        return path

    def test_it_is_read(self, tmp_path: Path) -> None:
        (tmp_path / "w.bin").write_bytes(b"\0" * 8 + (2 * W).tobytes())
        assert from_onnx(self.model(tmp_path, "w.bin", offset="8"))["main"]

    def test_missing(self, tmp_path: Path) -> None:
        refused_model(
            InvalidModelError,
            self.model(tmp_path, "w.bin"),
            "weight 'w' is stored in 'w.bin', which does not exist beside the model\n"
            f"help: put the file at {tmp_path / 'w.bin'}",
        )

    def test_model_given_as_bytes(self, tmp_path: Path) -> None:
        data = self.model(tmp_path, "w.bin").read_bytes()
        text = (
            "weight 'w' is stored in the file 'w.bin', but the model was not given as a file\n"
            "help: pass the path of the model instead, with its data files beside it"
        )
        refused_model(InvalidModelError, data, text)
        refused_model(InvalidModelError, onnx.load_model_from_string(data), text)

    @pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "a/../../w.bin", "", "..", "a\0b"])
    def test_outside_the_folder(self, tmp_path: Path, location: str) -> None:
        folder = tmp_path / "model"
        folder.mkdir()
        (tmp_path / "w.bin").write_bytes(W.tobytes())
        refused_model(
            InvalidModelError,
            self.model(folder, location),
            f"weight 'w' refers to {location!r}, which is outside the model's folder; refused\n"
            "help: a model may only read files beside it: re-export it with relative paths",
        )

    def test_link_that_leaves_the_folder(self, tmp_path: Path) -> None:
        folder = tmp_path / "model"
        folder.mkdir()
        (tmp_path / "w.bin").write_bytes(W.tobytes())
        (folder / "w.bin").symlink_to(tmp_path / "w.bin")
        refused_model(
            InvalidModelError,
            self.model(folder, "w.bin"),
            "weight 'w' refers to 'w.bin', which is outside the model's folder; refused\n"
            "help: a model may only read files beside it: re-export it with relative paths",
        )

    def test_too_short(self, tmp_path: Path) -> None:
        (tmp_path / "w.bin").write_bytes(W.tobytes()[:-1])
        refused_model(
            InvalidModelError,
            self.model(tmp_path, "w.bin", length="4096"),
            "weight 'w' needs bytes 0 to 4096 of w.bin, which has 4095\n"
            "help: copy or download the file again",
        )
        refused_model(
            InvalidModelError,
            self.model(tmp_path, "w.bin"),
            "weight 'w' has 4095 bytes of data, which are no float32 array of shape (32, 32)",
        )

    @pytest.mark.parametrize("offset", ["-1", "4x", "1e3", "٣"])
    def test_offset_that_is_no_number(self, tmp_path: Path, offset: str) -> None:
        (tmp_path / "w.bin").write_bytes(W.tobytes())
        refused_model(
            InvalidModelError,
            self.model(tmp_path, "w.bin", offset=offset),
            f"weight 'w' has the offset {offset!r}, expected a number of bytes",
        )

    def test_inline_data_too_short(self) -> None:
        model = model_of(ADD, w=W)
        model.graph.initializer[0].dims[:] = [32, 33]
        refused_model(
            InvalidModelError,
            model,
            "weight 'w' has 4096 bytes of data, which are no float32 array of shape (32, 33)",
        )


class TestShapes:
    MODEL = model_of("g (float[N,3] x, float[N] z) => (float[N,3] y) { y = Neg(x) }")

    @pytest.mark.parametrize(
        ("shapes", "text"),
        [
            (
                {"w": (1,)},
                "the model has no input 'w'\nhelp: its inputs: 'x', 'z'; its symbolic dimensions: 'N'",
            ),
            (
                {"N": (1, 2)},
                "the model has no input 'N'\nhelp: its inputs: 'x', 'z'; its symbolic dimensions: 'N'",
            ),
            ({"x[2]": (1,)}, "input 'x' of type Tensor[(N, 3), float32] has no axis 2"),
            ({"x[0]": (1,), "N": (2,)}, "dimension 'N' is fixed to 1 and to 2"),
            ({"x": (1,)}, "input 'x' has 2 dimensions Tensor[(N, 3), float32], got 1: (1,)"),
            ({"x": (1, 4)}, "input 'x' is Tensor[(N, 3), float32], which does not fit the shape (1, 4)"),
            ({"x": (-1, 3)}, "input 'x' is Tensor[(N, 3), float32], which does not fit the shape (-1, 3)"),
            ({"x": (1, 3), "z": (2,)}, "dimension 'N' is fixed to 1 and to 2 (input 'z')"),
        ],
    )
    def test_shapes_that_do_not_fit(self, shapes: dict[str, tuple[int, ...]], text: str) -> None:
        refused(UsageError, lambda: from_onnx(self.MODEL, shapes=shapes), text)


class TestExport:
    def test_tuple_parameter(self) -> None:
        pair = Var("pair", checked_type=TupleType((F32, F32)))
        refused(
            UnsupportedModelError,
            lambda: to_onnx(Function((pair,), pair)),
            "parameter 'pair' has the type (Tensor[(2, 3), float32], Tensor[(2, 3), float32]), "
            "which an ONNX input cannot have\nhelp: run InferType, and pass tuples field by field",
        )

    def test_parameter_of_unknown_type(self) -> None:
        x = Var("x")
        refused(
            UnsupportedModelError,
            lambda: to_onnx(Function((x,), x)),
            "parameter 'x' has the type unknown, which an ONNX input cannot have\n"
            "help: run InferType, and pass tuples field by field",
        )

    def test_recursion(self) -> None:
        x, again = Var("x", checked_type=F32), GlobalVar("again")
        function = Function((x,), Call(again, (x,), checked_type=F32))
        module = IRModule({again: function})
        refused(
            UnsupportedModelError,
            lambda: to_onnx(module["again"], module),
            "@again is recursive; ONNX has no recursive functions\n"
            "help: use the operators Loop or Scan, or leave this function to the interpreter",
        )

    def test_global_function_that_is_not_there(self) -> None:
        x = Var("x", checked_type=F32)
        refused(
            UnsupportedModelError,
            lambda: to_onnx(Function((x,), Call(GlobalVar("f"), (x,), checked_type=F32))),
            "@f is called, but the module does not define it",
        )

    def test_function_value(self) -> None:
        x, f = Var("x", checked_type=F32), Var("f", checked_type=F32)
        refused(
            UnsupportedModelError,
            lambda: to_onnx(Function((x, f), Call(f, (x,), checked_type=F32))),
            "a function value is called that is not known at compile time; ONNX has none of these",
        )

    def test_free_variable(self) -> None:
        x, y = Var("x", checked_type=F32), Var("y", checked_type=F32)
        refused(
            UnsupportedModelError,
            lambda: to_onnx(Function((x,), op.call("Add", x, y))),
            "variable %y is not defined inside the exported function",
        )

    def test_tuple_as_operator_argument(self) -> None:
        x = Var("x", checked_type=F32)
        neg = Call(Op("Neg"), (Tuple((x, x)),), Attrs(), checked_type=F32)
        refused(
            UnsupportedModelError,
            lambda: to_onnx(Function((x,), neg)),
            "a tuple is passed to an operator; ONNX operators take tensors",
        )

    def test_absent_result(self) -> None:
        x = Var("x", checked_type=F32)
        refused(
            UnsupportedModelError,
            lambda: to_onnx(Function((x,), Tuple((x, op.absent())))),
            "an absent value is returned; an ONNX output must have a value",
        )

    def test_opset_that_lacks_the_operator(self) -> None:
        x = Var("x", checked_type=F32)
        with pytest.raises(
            UnsupportedModelError, match=r"^the program cannot be exported at opset 13: "
        ) as caught:
            to_onnx(Function((x,), op.call("Gelu", x)), opset=13)
        assert caught.value.exit_code == 3

    def test_more_than_a_message_holds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("intarsia.frontend.onnx.exporter.LARGEST_MESSAGE", 4000)
        main = from_onnx(model_of(ADD, w=W))["main"]
        refused(
            UnsupportedModelError,
            lambda: to_onnx(main),
            "the model is 0.0 GiB with its weights; one ONNX message holds at most 2 GiB\n"
            "help: use onnx_source, which keeps the weights beside the model",
        )
