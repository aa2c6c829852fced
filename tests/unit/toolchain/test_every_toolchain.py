"""One suite over all toolchains; what an engine refuses is in GAPS, and a test fails when a gap closes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto, helper

from intarsia.runtime.kernel import Array, ClosableKernel, KernelSource, Value
from intarsia.support.errors import CompileError, UsageError
from intarsia.toolchain import toolchain, usable_toolchains

pytestmark = pytest.mark.quick_tests(
    110,
    also=[
        "test_a_closed_kernel_lets_go_and_says_so[string-onnxruntime]",
        "test_computes_and_allocates_results[native-layout_transform]",
        "test_computes_and_allocates_results[onnxruntime-weight int4]",
        "test_computes_and_allocates_results[openvino-float8_e4m3fn]",
    ],
)

HAS_TORCH = any(each.name == "torch" for each in usable_toolchains())  # it is an extra
TOOLCHAINS = ("native", "onnxruntime", "openvino", "reference", *(["torch"] if HAS_TORCH else []))
GAPS = {
    ("openvino", "string"): "'x' is no tensor of numbers",
    ("openvino", "sequence"): "'y' is no tensor of numbers",
    ("openvino", "optional"): "'x' is no tensor of numbers",
    ("openvino", "ml operator"): "No conversion rule found for operations: ai.onnx.ml.Binarizer",
    ("openvino", "complex64"): "Unsupported data type COMPLEX64",
    ("openvino", "unknown rank"): "CPU plug-in doesn't support Parameter operation with dynamic rank",
    (
        "onnxruntime",
        "complex64",
    ): "MLDataType for: tensor(complex64) is not currently registered or supported",
    ("onnxruntime", "int4"): "'x' passes int4 in and out of it",
    ("openvino", "int4"): "'x' passes int4 in and out of it",
    ("onnxruntime", "layout_transform"): "",
    ("openvino", "layout_transform"): "",
    ("native", "unknown rank"): "a parameter of Tensor[?, float32] has no native kernel",
    ("native", "float8_e4m3fn"): "a parameter of Tensor[(3,), float8_e4m3fn] has no native kernel",
    ("native", "int4"): "a parameter of Tensor[(3,), int4] has no native kernel",
    ("native", "complex64"): "a parameter of Tensor[(3,), complex64] has no native kernel",
    ("native", "string"): "a parameter of Tensor[(2,), string] has no native kernel",
    ("native", "sequence"): "operator 'SequenceConstruct'",
    ("native", "optional"): "a parameter of Optional[Tensor[(3,), float32]] has no native kernel",
}
"""What an engine refuses, with a part of its CompileError."""
TORCH_GAPS = {
    "result of unknown shape": "operator 'NonZero' has no rule",
    "input passed through by an Einsum": "operator 'Einsum' has no rule",
    "bfloat16": "an array of bfloat16, which torch lacks",
    "float8_e4m3fn": "an array of float8_e4m3fn, which torch lacks",
    "int4": "an array of int4, which torch lacks",
    "complex64": "an array of complex64, which torch lacks",
    "weight bfloat16": "an array of bfloat16, which torch lacks",
    "weight float8_e4m3fn": "an array of float8_e4m3fn, which torch lacks",
    "weight int4": "an array of int4, which torch lacks",
    "string": "an array of object, which torch lacks",
    "sequence": "'y' is no tensor",
    "optional": "'x' is no tensor",
    "ml operator": "operator 'ai.onnx.ml::Binarizer' has no rule",
    "layout_transform": "has no rule",
}
GAPS |= {("torch", case): problem for case, problem in TORCH_GAPS.items()} if HAS_TORCH else {}

SourceOf = Callable[..., KernelSource]
node = helper.make_node


def value(name: str, dtype: Any, *shape: int | str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def unknown(name: str, dtype: Any) -> ValueInfoProto:
    """A tensor of unknown rank."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)


@dataclass
class Case:
    """A model, the inputs of two calls, and what they must return."""

    nodes: list[Any]
    inputs: list[ValueInfoProto]
    outputs: list[ValueInfoProto]
    calls: list[tuple[list[Value], list[Value]]]
    inline: dict[str, Array] = field(default_factory=dict)
    weights: dict[str, Array] = field(default_factory=dict)


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def doubling(dtype: Any) -> Case:
    """Adds x to itself."""
    first, second = np.array([1, 2, 3], dtype), np.array([3, 0, 1], dtype)
    calls: list[tuple[list[Value], list[Value]]] = [
        ([x], [np.asarray(x + x, dtype)]) for x in (first, second)
    ]
    return Case([node("Add", ["x", "x"], ["y"])], [value("x", dtype, 3)], [value("y", dtype, 3)], calls)


def moving(dtype: Any) -> Case:
    """Gives x another shape: an operator that every element type has."""
    calls: list[tuple[list[Value], list[Value]]] = [
        ([x], [x.reshape(1, 3)]) for x in (np.array([1, 0, 1], dtype), np.array([0, 0, 1], dtype))
    ]
    shape = {"shape": np.array([1, 3])}
    nodes = [node("Reshape", ["x", "shape"], ["y"])]
    return Case(nodes, [value("x", dtype, 3)], [value("y", dtype, 1, 3)], calls, shape)


def weighted(dtype: Any) -> Case:
    """A large weight: by itself, and transposed (which an engine folds)."""
    weight = (np.arange(600).reshape(20, 30) % 5).astype(dtype)
    nodes = [
        node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT),
        node("Transpose", ["w"], ["t"], perm=[1, 0]),
        node("Cast", ["t"], ["u"], to=TensorProto.FLOAT),
        node("MatMul", ["x", "wide"], ["y"]),
        node("MatMul", ["y", "u"], ["z"]),
    ]
    calls: list[tuple[list[Value], list[Value]]] = []
    for x in (np.ones((1, 20), np.float32), np.eye(1, 20, dtype=np.float32)):
        product = x @ weight.astype(np.float32)
        calls.append(([x], [product, product @ weight.astype(np.float32).T]))
    outputs = [value("y", np.float32, 1, 30), value("z", np.float32, 1, 20)]
    return Case(nodes, [value("x", np.float32, 1, 20)], outputs, calls, weights={"w": weight})


def shaped(nodes: list[Any], *shape: int | str, arrays: tuple[Array, Array]) -> Case:
    """A function from x to y that keeps the type, with its effect computed by NumPy's negative."""
    calls: list[tuple[list[Value], list[Value]]] = [([x], [np.asarray(-x)]) for x in arrays]
    return Case(nodes, [value("x", np.float32, *shape)], [value("y", np.float32, *shape)], calls)


X, Z = f32(1, -2, 3), f32(-4, 5, 6)
NEG = [node("Neg", ["x"], ["y"])]
SEQUENCE = helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)
OPTIONAL = helper.make_value_info(
    "x", helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [3]))
)
STRING = helper.make_tensor_value_info("x", TensorProto.STRING, [2])
WORDS = np.array(["one", "two"], object)

CASES = {
    "static": shaped(NEG, 3, arrays=(X, Z)),
    "dynamic": shaped(NEG, "n", arrays=(X, f32(7, 8))),
    "dynamic zero size": shaped(
        NEG, "n", 2, arrays=(np.ones((3, 2), np.float32), np.ones((0, 2), np.float32))
    ),
    "zero size": shaped(NEG, 0, 2, arrays=(np.ones((0, 2), np.float32), np.zeros((0, 2), np.float32))),
    "scalar": shaped(NEG, arrays=(np.array(2, np.float32), np.array(-3, np.float32))),
    "unknown rank": Case(NEG, [unknown("x", np.float32)], [unknown("y", np.float32)], [([X], [-X])]),
    "result of unknown shape": Case(
        [node("NonZero", ["x"], ["y"])],
        [value("x", np.float32, 3)],
        [value("y", np.int64, 1, "n")],
        [([f32(0, 1, 1)], [np.array([[1, 2]])]), ([f32(1, 1, 1)], [np.array([[0, 1, 2]])])],
    ),
    "several outputs": Case(
        [
            node("Neg", ["x"], ["y"]),
            node("Abs", ["x"], ["z"]),
            node("Split", ["x"], ["a", "b", "c"], num_outputs=3),
        ],
        [value("x", np.float32, 3)],
        [
            value("z", np.float32, 3),
            value("y", np.float32, 3),
            value("c", np.float32, 1),
            value("a", np.float32, 1),
        ],
        [([x], [np.abs(x), -x, x[2:], x[:1]]) for x in (X, Z)],
    ),
    "several inputs, one unused": Case(
        [node("Sub", ["z", "x"], ["y"])],
        [value("unused", np.float32, 2), value("x", np.float32, 3), value("z", np.float32, 3)],
        [value("y", np.float32, 3)],
        [([f32(1, 1), X, Z], [Z - X]), ([f32(0, 1), Z, X], [X - Z])],
    ),
    "input passed through": Case(
        NEG,
        [value("x", np.float32, 3)],
        [value("x", np.float32, 3), value("y", np.float32, 3)],
        [([x], [x, -x]) for x in (X, Z)],
    ),
    "input passed through by operators that do nothing": Case(
        [node("Dropout", ["x"], ["y"]), node("Sum", ["x"], ["z"]), node("Identity", ["x"], ["i"])],
        [value("x", np.float32, "n")],
        [value("y", np.float32, "n"), value("z", np.float32, "n"), value("i", np.float32, "n")],
        [([x], [x, x, x]) for x in (X, Z)],
    ),
    "input passed through by an Einsum": Case(
        [node("Einsum", ["x"], ["y"], equation="i->i")],
        [value("x", np.float32, 3)],
        [value("y", np.float32, 3)],
        [([x], [x]) for x in (X, Z)],
    ),
    "nothing but a passed input": Case(
        [], [value("x", np.float32, 3)], [value("x", np.float32, 3)], [([X], [X]), ([Z], [Z])]
    ),
    "same result twice": Case(
        [*NEG, node("Identity", ["y"], ["z"])],
        [value("x", np.float32, 3)],
        [value("y", np.float32, 3), value("z", np.float32, 3)],
        [([x], [-x, -x]) for x in (X, Z)],
    ),
    "constant output": Case(
        [*NEG, node("Identity", ["c"], ["d"])],
        [value("x", np.float32, 3)],
        [value("c", np.float32, 3), value("y", np.float32, 3), value("d", np.float32, 3)],
        [([x], [Z, -x, Z]) for x in (X, Z)],
        {"c": Z},
    ),
    "no input": Case(
        [node("Neg", ["c"], ["y"])], [], [value("y", np.float32, 3)], [([], [-Z]), ([], [-Z])], {"c": Z}
    ),
    "bool": moving(np.bool_),
    "uint8": doubling(np.uint8),
    "int32": doubling(np.int32),
    "int64": doubling(np.int64),
    "float16": doubling(np.float16),
    "float64": doubling(np.float64),
    "bfloat16": moving(ml_dtypes.bfloat16),
    "float8_e4m3fn": moving(ml_dtypes.float8_e4m3fn),
    "int4": moving(ml_dtypes.int4),
    "complex64": moving(np.complex64),
    "weight float32": weighted(np.float32),
    "weight float16": weighted(np.float16),
    "weight bfloat16": weighted(ml_dtypes.bfloat16),
    "weight float8_e4m3fn": weighted(ml_dtypes.float8_e4m3fn),
    "weight int8": weighted(np.int8),
    "weight int64": weighted(np.int64),
    "weight int4": weighted(ml_dtypes.int4),
    "string": Case(
        [node("Identity", ["x"], ["y"])],
        [STRING],
        [helper.make_tensor_value_info("y", TensorProto.STRING, [2])],
        [([WORDS], [WORDS]), ([WORDS[::-1].copy()], [WORDS[::-1].copy()])],
    ),
    "sequence": Case(
        [node("SequenceConstruct", ["x", "x"], ["y"])],
        [value("x", np.float32, 3)],
        [SEQUENCE],
        [([X], [[X, X]])],
    ),
    "optional": Case(
        [node("OptionalHasElement", ["x"], ["y"])],
        [OPTIONAL],
        [value("y", np.bool_)],
        [([None], [np.array(False)]), ([X], [np.array(True)])],
    ),
    "ml operator": Case(
        [node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=0.0)],
        [value("x", np.float32, 3)],
        [value("y", np.float32, 3)],
        [([X], [f32(1, 0, 1)]), ([Z], [f32(0, 1, 1)])],
    ),
    "layout_transform": Case(
        [
            node("on_device", ["x"], ["a"], domain="intarsia"),
            node("device_copy", ["a"], ["b"], domain="intarsia"),
            node("layout_transform", ["b"], ["y"], domain="intarsia", src_layout="NCHW", dst_layout="NHWC"),
        ],
        [value("x", np.float32, 1, 2, 1, 3)],
        [value("y", np.float32, 1, 1, 3, 2)],
        [([x], [x.transpose(0, 2, 3, 1)]) for x in (np.arange(6, dtype=np.float32).reshape(1, 2, 1, 3),)],
    ),
}


def working(arrays_only: bool = False) -> Iterator[Any]:
    for name in TOOLCHAINS:
        for title, case in CASES.items():
            if (name, title) not in GAPS and not (arrays_only and title == "sequence"):
                yield pytest.param(name, case, id=f"{name}-{title}")


def buffers_for(expected: list[Value]) -> list[Array]:
    return [np.zeros(item.shape, item.dtype) for item in expected if isinstance(item, np.ndarray)]


def loaded(source_of: SourceOf, name: str, case: Case) -> Any:
    source = source_of(name, case.nodes, case.inputs, case.outputs, case.inline, case.weights)
    return toolchain(name).load(source)


def same(found: list[Value], expected: list[Value]) -> None:
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        if isinstance(want, list):
            assert isinstance(got, list)
            same(got, want)
        else:
            assert isinstance(got, np.ndarray)
            assert isinstance(want, np.ndarray)
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            assert got.flags.c_contiguous
            assert got.tolist() == want.tolist()


@pytest.mark.parametrize(("name", "case"), list(working()))
def test_computes_and_allocates_results(source_of: SourceOf, name: str, case: Case) -> None:
    kernel = loaded(source_of, name, case)
    kept = []
    for inputs, expected in [*case.calls, *case.calls]:
        before = [np.copy(item) if isinstance(item, np.ndarray) else item for item in inputs]
        found = kernel.run(inputs, [None] * len(expected))
        same(found, expected)
        kept.append((found, expected))
        for item, copy in zip(inputs, before, strict=True):  # inputs are not written to
            assert not isinstance(item, np.ndarray) or np.asarray(copy).tolist() == item.tolist()
    for found, expected in kept:
        same(found, expected)  # a later call does not write into earlier results
        for result in found:
            inputs = [item for item in case.calls[0][0] if isinstance(item, np.ndarray)]
            assert not any(
                np.shares_memory(result, item) for item in inputs if isinstance(result, np.ndarray)
            )


@pytest.mark.quick_cases(16)
@pytest.mark.parametrize(("name", "case"), list(working(arrays_only=True)))
def test_writes_into_the_buffers_given(source_of: SourceOf, name: str, case: Case) -> None:
    kernel = loaded(source_of, name, case)
    for inputs, expected in case.calls:
        first, second = (buffers_for(expected) for _ in range(2))
        for buffers in (first, first, second):
            for buffer in first:
                buffer[...] = np.zeros((), buffer.dtype)
            found = kernel.run(inputs, buffers)
            assert all(result is buffer for result, buffer in zip(found, buffers, strict=True))
            same(found, expected)
            for buffer in first if buffers is second else ():
                assert np.array_equal(buffer, np.zeros_like(buffer))  # the old buffers are left alone


@pytest.mark.quick_cases(16)
@pytest.mark.parametrize(("name", "case"), list(working(arrays_only=True)))
def test_alternates_between_given_and_allocated(source_of: SourceOf, name: str, case: Case) -> None:
    kernel = loaded(source_of, name, case)
    inputs, expected = case.calls[0]
    buffers = buffers_for(expected)
    kernel.run(inputs, buffers)
    for buffer in buffers:
        buffer[...] = np.zeros((), buffer.dtype)
    same(kernel.run(inputs, [None] * len(buffers)), expected)
    assert all(np.array_equal(buffer, np.zeros_like(buffer)) for buffer in buffers)


@pytest.mark.parametrize(("name", "case"), list(GAPS))
def test_gap(source_of: SourceOf, name: str, case: str) -> None:
    with pytest.raises(CompileError) as raised:
        loaded(source_of, name, CASES[case])
    assert raised.value.problem.startswith(f"{name} cannot compile this: ")
    assert GAPS[name, case] in raised.value.problem


@pytest.mark.parametrize("name", TOOLCHAINS)
def test_inputs_are_read_again_where_they_were_bound(source_of: SourceOf, name: str) -> None:
    kernel = loaded(source_of, name, CASES["static"])
    x, buffer = X.copy(), np.zeros(3, np.float32)
    kernel.run([x], [buffer])
    x[:] = 9
    kernel.run([x], [buffer])
    assert buffer.tolist() == [-9, -9, -9]


@pytest.mark.parametrize("name", TOOLCHAINS)
def test_read_only_inputs_and_weights(source_of: SourceOf, name: str) -> None:
    case = weighted(np.float32)
    x = np.ones((1, 20), np.float32)
    for array in (x, case.weights["w"]):
        array.flags.writeable = False
    found = loaded(source_of, name, case).run([x], [None, None])
    same(found, case.calls[0][1])


@pytest.mark.parametrize("name", TOOLCHAINS)
def test_a_kernel_loaded_from_its_own_parts_is_the_same(source_of: SourceOf, name: str) -> None:
    title = "input passed through by operators that do nothing"
    case = CASES["input passed through by an Einsum" if (name, title) in GAPS else title]
    kernel = loaded(source_of, name, case)
    again = toolchain(name).load(kernel.source, kernel.blob())
    assert again.source is kernel.source
    for inputs, expected in case.calls:
        buffers: list[Array | None] = [np.zeros(3, np.float32) for _ in expected]
        same(again.run(inputs, buffers), expected)


@pytest.mark.parametrize("name", TOOLCHAINS)
@pytest.mark.parametrize("title", ["static", "dynamic", "string", "weight float32"])
def test_a_closed_kernel_lets_go_and_says_so(source_of: SourceOf, name: str, title: str) -> None:
    if (name, title) in GAPS:
        return
    case = CASES[title]
    closable = kernel = loaded(source_of, name, case)
    inputs, expected = case.calls[0]
    same(kernel.run(inputs, [None] * len(expected)), expected)
    assert isinstance(closable, ClosableKernel)
    parts = (
        "_session",
        "_binding",
        "_lent",
        "_request",
        "_compiled",
        "_evaluator",
        "_region",
        "_regions",
        "_table",
        "_program",
    )
    held = [part for part in parts if getattr(kernel, part, None) is not None]
    assert held
    kernel.close()
    kernel.close()
    assert all(getattr(kernel, part) is None for part in held)
    with pytest.raises(UsageError, match="the kernel is closed"):
        kernel.run(inputs, [None] * len(expected))
