"""From a function of the language to a kernel, and what becomes of its weights and options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper

from intarsia.ir import Call as CallExpr
from intarsia.ir import Constant, DType, Function, Op, TensorType, Tuple, Var
from intarsia.native.machine.isa import Isa
from intarsia.op import call
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.toolchain import toolchain
from intarsia.toolchain.external_weights import unfolded_weights
from intarsia.toolchain.onnxruntime.session import session_options

NAMES = ("onnxruntime", "openvino", "reference")
SourceOf = Callable[..., KernelSource]


def linear() -> tuple[Function, Array]:
    weight = np.arange(400, dtype=np.float32).reshape(20, 20) / 400
    x = Var("x", checked_type=TensorType((1, 20), DType.FLOAT32))
    product = call("MatMul", x, Constant(weight))
    return Function((x,), Tuple((call("Relu", product), product))), weight


@pytest.mark.parametrize("name", NAMES)
def test_compiles_a_function(name: str) -> None:
    function, weight = linear()
    kernel = toolchain(name).compile(function, Target(f"cpu -toolchain={name} -threads=1"))
    x = np.linspace(-1, 1, 20, dtype=np.float32).reshape(1, 20)
    buffers = [np.zeros((1, 20), np.float32) for _ in range(2)]
    found = kernel.run([x], buffers)
    assert all(result is buffer for result, buffer in zip(found, buffers, strict=True))
    np.testing.assert_allclose(buffers[1], x @ weight, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(buffers[0], np.maximum(buffers[1], 0))


@pytest.mark.parametrize("name", NAMES)
def test_the_source_shares_the_weights(name: str) -> None:
    function, weight = linear()
    source = toolchain(name).compile(function, Target(f"cpu -toolchain={name} -threads=1")).source
    assert source.toolchain == name
    assert source.target == f"cpu -toolchain={name} -threads=1"
    (shared,) = source.weights.values()
    assert np.shares_memory(shared, weight)
    assert ModelProto.FromString(source.model).opset_import[0].version == 26


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_refuses_what_cannot_be_exported(name: str) -> None:
    body = CallExpr(Function((), Constant(np.ones(1, np.float32))), ())
    pair = Var("pair", checked_type=Tuple((body,)).checked_type)
    with pytest.raises(CompileError, match=f"^{name} cannot compile this: "):
        toolchain(name).compile(Function((pair,), pair), Target(f"cpu -toolchain={name}"))


@pytest.mark.parametrize("opset", [21, 26])
def test_where_an_engine_lacks_a_kernel_an_older_opset_is_tried(opset: int) -> None:
    """There is no RandomNormalLike-22 in onnxruntime 1.31; Neg stays at the pinned opset."""
    x = Var("x", checked_type=TensorType((2,), DType.FLOAT32))
    body = call("Mul", call("RandomNormalLike", x), Constant(np.zeros(2, np.float32)))
    body = body if opset == 21 else call("Neg", x)
    kernel = toolchain("onnxruntime").compile(Function((x,), body), Target("cpu -toolchain=onnxruntime"))
    model = onnx.load_model_from_string(kernel.source.model)
    assert [item.version for item in model.opset_import] == [opset]
    (found,) = kernel.run([np.zeros(2, np.float32)], [None])
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [0, 0]


def test_the_first_refusal_is_told_where_no_opset_helps() -> None:
    x = Var("x", checked_type=TensorType((2,), DType.FLOAT32))
    both = Function((x,), call("Swish", call("RandomNormalLike", x)))  # there is no Swish at opset 21
    with pytest.raises(CompileError, match=r"RandomNormalLike\(22\)"):
        toolchain("onnxruntime").compile(both, Target("cpu -toolchain=onnxruntime"))


def adding(source_of: SourceOf, weight: Array) -> KernelSource:
    float32 = helper.np_dtype_to_tensor_dtype(np.dtype(np.float32))
    ends = [helper.make_tensor_value_info(name, float32, weight.shape) for name in ("x", "y")]
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    source: KernelSource = source_of("onnxruntime", nodes, ends[:1], ends[1:], weights={"w": weight})
    return source


@pytest.mark.parametrize("size", [1, 400])
def test_onnxruntime_reads_weights_where_they_are(source_of: SourceOf, size: int) -> None:
    weight = np.ones(size, np.float32)
    places = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(np.int64)), [size])
    y = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(weight.dtype), [size])
    gather = helper.make_node("Gather", ["w", "x"], ["y"])
    source = source_of("onnxruntime", [gather], [places], [y], weights={"w": weight})
    kernel = toolchain("onnxruntime").load(source)
    weight[:] = 7  # never done by Intarsia: it shows whose memory is read
    (found,) = kernel.run([np.arange(size)], [None])
    assert isinstance(found, np.ndarray)
    assert set(found.tolist()) == {7}


def test_weights_that_an_engine_would_fold_are_not_lent() -> None:
    nodes = [
        helper.make_node("Transpose", ["a"], ["t"]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
        helper.make_node("MatMul", ["y", "b"], ["z"]),
        helper.make_node("Add", ["z", "f"], ["o"]),
        helper.make_node("Constant", [], ["c"], value_float=1.0),
        helper.make_node("Mul", ["c", "d"], ["e"]),
    ]
    array = np.ones(1, np.float32)
    tensors = [helper.make_tensor(name, 1, [1], array) for name in "abdf"]
    graph = helper.make_graph(nodes, "g", [], [], tensors)
    assert unfolded_weights(graph) & {"a", "b", "d", "f"} == {"b"}


@pytest.mark.parametrize("name", NAMES)
def test_a_transposition_that_an_engine_moves_past_a_scale(name: str) -> None:
    """Where onnxruntime transposes the scale, it must not find the one that was lent to it."""
    scale = np.arange(1, 401, dtype=np.float32).reshape(400, 1, 1)
    x = Var("x", checked_type=TensorType((1, 3, 5, 400), DType.FLOAT32))
    scaled = call("Mul", call("Transpose", x, perm=(0, 3, 1, 2)), Constant(scale))
    function = Function((x,), call("Relu", call("Transpose", scaled, perm=(0, 2, 3, 1))))
    kernel = toolchain(name).compile(function, Target(f"cpu -toolchain={name} -threads=1"))
    array = np.linspace(-1, 1, 6000, dtype=np.float32).reshape(1, 3, 5, 400)
    (found,) = kernel.run([array], [None])
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, np.maximum(array * scale[:, 0, 0], 0), rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ({}, "the kernel's source lacks the weight 'w'"),
        ({"w": np.ones(3, np.float32)}, "the weight 'w' has type float32[3]; the model says float32[400]"),
        ({"w": np.ones(400)}, "the weight 'w' has type float64[400]; the model says float32[400]"),
    ],
)
def test_refuses_weights_that_do_not_fit(
    source_of: SourceOf, name: str, weights: dict[str, Array], problem: str
) -> None:
    source = adding(source_of, np.ones(400, np.float32))
    with pytest.raises(CompileError) as raised:
        toolchain(name).load(KernelSource(name, f"cpu -toolchain={name}", source.model, weights))
    assert str(raised.value) == problem


def test_options_of_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxruntime import GraphOptimizationLevel

    monkeypatch.setattr("intarsia.toolchain.onnxruntime.session.usable_cores", lambda root: 3)
    plain = session_options(Target("cpu -toolchain=onnxruntime"))
    assert plain.intra_op_num_threads == 3
    assert plain.graph_optimization_level == GraphOptimizationLevel.ORT_ENABLE_ALL
    assert plain.get_session_config_entry("session.force_spinning_stop") == "1"
    bare = session_options(Target("cpu -toolchain=onnxruntime -threads=5 -optimize=0"))
    assert bare.intra_op_num_threads == 5
    assert bare.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL


@pytest.mark.parametrize(
    ("features", "dtype", "level"),
    [
        (("avx2",), np.int8, "ORT_ENABLE_EXTENDED"),
        (("avx2",), np.uint8, "ORT_DISABLE_ALL"),
        (("avx2", "avxvnni"), np.int8, "ORT_DISABLE_ALL"),
    ],
)
def test_an_unoptimised_session_rewrites_products_that_would_saturate(
    features: tuple[str, ...], dtype: type[np.generic], level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnxruntime import GraphOptimizationLevel

    isa = Isa("x86_64", "generic", features, ())
    monkeypatch.setattr("intarsia.toolchain.onnxruntime.session.Isa.host_without_compiler", lambda: isa)
    graph = onnx.helper.make_graph(
        [], "g", [], [], [onnx.numpy_helper.from_array(np.ones((2, 2), dtype), "weight")]
    )
    target = Target("cpu -toolchain=onnxruntime -optimize=0")
    options = session_options(target, onnx.helper.make_model(graph))
    assert options.graph_optimization_level == getattr(GraphOptimizationLevel, level)


def test_openvino_computes_in_float32(source_of: SourceOf) -> None:
    kernel: Any = toolchain("openvino").load(adding(source_of, np.ones(4, np.float32)))
    compiled = kernel._compiled
    assert compiled.get_property("INFERENCE_PRECISION_HINT").to_string() == "f32"
    assert compiled.get_property("INFERENCE_NUM_THREADS") == 2
    assert compiled.get_property("NUM_STREAMS") == 1


@pytest.mark.parametrize("blob", [b"", b"not a blob", None])
def test_openvino_compiles_where_a_blob_does_not_fit(source_of: SourceOf, blob: bytes | None) -> None:
    kernel = toolchain("openvino").load(adding(source_of, np.ones(4, np.float32)), blob)
    (found,) = kernel.run([np.ones(4, np.float32)], [None])
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [2, 2, 2, 2]


def test_reference_runs_operators_of_the_language() -> None:
    x = Var("x", checked_type=TensorType((1, 2, 3, 4), DType.FLOAT32))
    body = CallExpr(
        Op("layout_transform", "intarsia"),
        (x,),
        {"src_layout": "NCHW", "dst_layout": "NHWC"},  # type: ignore[arg-type]  # Call makes Attrs of it
        checked_type=TensorType((1, 3, 4, 2), DType.FLOAT32),
    )
    kernel = toolchain("reference").compile(Function((x,), body), Target("cpu -toolchain=reference"))
    array = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    (found,) = kernel.run([array], [None])
    np.testing.assert_array_equal(np.asarray(found), array.transpose(0, 2, 3, 1))
