"""The toolchain torch against the reference, operator by operator; skipped where torch is not installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import ValueInfoProto, helper

from intarsia.ir import Call, Constant, Op, TensorType, Var
from intarsia.op import call
from intarsia.runtime.kernel import ClosableKernel, KernelSource
from intarsia.support.errors import CompileError, ExecutionError, UsageError
from intarsia.target import Target
from intarsia.toolchain import toolchain
from intarsia.toolchain.reference.toolchain import Reference

pytest.importorskip("torch", reason="torch is an extra: pip install 'intarsia[torch]'")

from intarsia.toolchain.torch.operators import OPERATORS
from intarsia.toolchain.torch.toolchain import Torch

SourceOf = Callable[..., KernelSource]
DRAW = np.random.default_rng(0)
IMAGE, SEQUENCE = (1, 4, 9, 8), (2, 3, 12)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return DRAW.standard_normal(shape).astype(np.float32)


def ints(*numbers: int) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.int64)


A, B, P = floats(3, 5), floats(3, 5), np.abs(floats(3, 5)) + 0.5
TRUE = floats(3, 5) > 0
FORMS: dict[str, tuple[list[Any], dict[str, Any], dict[str, Any]]] = {
    **{
        name: ([P], {}, {})
        for name in (
            *(
                "Abs",
                "Ceil",
                "Cos",
                "Elu",
                "Erf",
                "Exp",
                "Floor",
                "Gelu",
                "HardSigmoid",
                "HardSwish",
                "Identity",
            ),
            *("LeakyRelu", "Log", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Softplus"),
            *("Sqrt", "Tanh", "Dropout", "Softmax", "LogSoftmax", "Flatten", "Transpose"),
        )
    },
    **{
        name: ([A, B], {}, {})
        for name in (
            *("Add", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mul"),
            *("PRelu", "Sub", "Sum", "Concat"),
        )
    },
    **{name: ([TRUE, A > 0], {}, {}) for name in ("And", "Or", "Xor")},
    "Not": ([TRUE], {}, {}),
    "Pow": ([P, A], {}, {}),
    "Pow of whole numbers": ([ints(2, 3), floats(2) * 0 + 3], {}, {}),
    "Div of whole numbers": ([ints(-7, 7, -8), ints(2, -2, 4)], {}, {}),
    "Where": ([TRUE, A, B], {}, {}),
    "Cast": ([A], {}, {"to": 6}),
    "Clip": ([A, np.float32(-0.5), np.float32(0.5)], {}, {}),
    "Gelu by tanh": ([A], {}, {"approximate": "tanh"}),
    "MatMul": ([floats(2, 3, 4), floats(4, 5)], {}, {}),
    "Gemm": ([floats(3, 4), floats(5, 4), floats(5)], {}, {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    "Gemm of transposed": ([floats(4, 3), floats(4, 5)], {}, {"transA": 1}),
    "Conv of lines": ([floats(*SEQUENCE), floats(5, 3, 3)], {}, {"kernel_shape": [3], "pads": [1, 2]}),
    "ConvTranspose of lines": (
        [floats(*SEQUENCE), floats(3, 5, 3), floats(5)],
        {},
        {"kernel_shape": [3], "strides": [2], "pads": [1, 0]},
    ),
    "ConvTranspose": (
        [floats(*IMAGE), floats(4, 3, 3, 3)],
        {},
        {
            "kernel_shape": [3, 3],
            "strides": [2, 3],
            "pads": [1, 1, 1, 1],
            "dilations": [2, 1],
            "output_padding": [1, 2],
        },
    ),
    "LRN": ([floats(*IMAGE)], {}, {"size": 3, "alpha": 0.5, "beta": 0.6, "bias": 1.5}),
    "Conv": (
        [floats(*IMAGE), floats(6, 2, 3, 3), floats(6)],
        {},
        {"kernel_shape": [3, 3], "group": 2, "strides": [2, 1], "dilations": [1, 2], "pads": [1, 2, 1, 2]},
    ),
    "Conv with uneven pads": (
        [floats(*IMAGE), floats(6, 4, 3, 3)],
        {},
        {"kernel_shape": [3, 3], "pads": [0, 1, 1, 0]},
    ),
    "Conv of volumes": ([floats(1, 2, 4, 5, 6), floats(3, 2, 2, 2, 2)], {}, {"kernel_shape": [2, 2, 2]}),
    "MaxPool": ([floats(*IMAGE)], {}, {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    "MaxPool of lines": ([floats(*SEQUENCE)], {}, {"kernel_shape": [3], "dilations": [2]}),
    "AveragePool": ([floats(*IMAGE)], {}, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "AveragePool that counts pads": (
        [floats(*IMAGE)],
        {},
        {"kernel_shape": [3, 3], "pads": [1, 0, 1, 1], "count_include_pad": 1},
    ),
    "GlobalAveragePool": ([floats(*IMAGE)], {}, {}),
    "GlobalMaxPool": ([floats(*IMAGE)], {}, {}),
    "Softmax over 1": ([floats(2, 3, 4)], {}, {"axis": 1}),
    "LayerNormalization": ([floats(2, 3, 4), floats(3, 4), floats(3, 4)], {}, {"axis": 1}),
    "LayerNormalization without bias": ([floats(2, 3, 4), floats(4)], {}, {"epsilon": 0.1}),
    "BatchNormalization": ([floats(*IMAGE), *(np.abs(floats(4)) for _ in range(4))], {}, {}),
    "Reshape": ([floats(2, 3, 4)], {"s": ints(0, -1)}, {}),
    "Transpose by perm": ([floats(2, 3, 4)], {}, {"perm": [2, 0, 1]}),
    "Slice": ([floats(6, 5)], {"s": ints(-5, 1), "e": ints(2**40, -1), "a": ints(0, 1), "t": ints(2, 1)}, {}),
    "Shape": ([floats(2, 3, 4)], {}, {"start": 1, "end": -1}),
    "Size": ([floats(2, 3, 4)], {}, {}),
    "Pad": ([floats(2, 3, 4)], {"p": ints(1, 0, 2, 0, 3, 0), "v": np.float32(7)}, {}),
    "Pad of axes": ([floats(2, 3, 4)], {"p": ints(1, 2), "v": np.float32(0), "a": ints(-1)}, {}),
    "Flatten at 0": ([floats(2, 3, 4)], {}, {"axis": 0}),
    "Squeeze": ([floats(1, 3, 1)], {"a": ints(-1)}, {}),
    "Squeeze of all": ([floats(1, 3, 1)], {}, {}),
    "Unsqueeze": ([floats(3, 4)], {"a": ints(-1, 1)}, {}),
    "Expand": ([floats(3, 1)], {"s": ints(2, 1, 4)}, {}),
    "Gather of one element": ([floats(5), np.array(-2)], {}, {}),
    "Reshape to a scalar": ([floats(1, 1)], {"s": ints()}, {}),
    "Gather": ([floats(4, 5), np.array([[0, -1], [2, 1]])], {}, {"axis": 1}),
    **{
        f"{name} {title}": ([P], inline, attributes)
        for name in sorted(OPERATORS)
        if name.startswith("Reduce")
        for title, inline, attributes in (
            ("of all", {}, {"keepdims": 0}),
            ("over -1", {"a": ints(-1)}, {}),
            ("over both", {"a": ints(0, 1)}, {"keepdims": 0}),
        )
    },
}
"""Inputs, inputs that are constants, and attributes; the operator is the first word of the key."""


def info(name: str, array: np.ndarray[Any, Any] | None) -> ValueInfoProto:
    if array is None:
        return helper.make_empty_tensor_value_info(name)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def source(source_of: SourceOf, title: str) -> tuple[KernelSource, list[Any], np.ndarray[Any, Any]]:
    """The source of a form, with its inputs and what the reference computes."""
    given, inline, attributes = FORMS[title]
    inputs = [np.asarray(item) for item in given]
    names = [f"x{index}" for index in range(len(inputs))]
    node = helper.make_node(title.split(maxsplit=1)[0], [*names, *inline], ["y"], **attributes)
    if title == "Concat":
        node.attribute.append(helper.make_attribute("axis", 1))
    infos = [info(name, array) for name, array in zip(names, inputs, strict=True)]
    untyped = source_of("reference", [node], infos, [info("y", None)], inline)
    (expected,) = Reference().load(untyped).run(inputs, [None])
    result = np.asarray(expected)
    return source_of("torch", [node], infos, [info("y", result)], inline), inputs, result


@pytest.mark.parametrize("title", FORMS)
def test_computes_what_the_reference_computes(source_of: SourceOf, title: str) -> None:
    made, inputs, expected = source(source_of, title)
    kernel = Torch().load(made)
    (found,) = kernel.run(inputs, [None])
    assert isinstance(found, np.ndarray)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    buffer = np.empty_like(expected)
    assert kernel.run(inputs, [buffer])[0] is buffer
    np.testing.assert_array_equal(buffer, found)


def test_every_operator_is_compared() -> None:
    assert {title.split()[0] for title in FORMS} >= set(OPERATORS) - {
        "LSTM",
        "Split",
    }  # which have several outputs


@pytest.mark.parametrize("inline", [{"s": ints(1, 3)}, {}], ids=["sizes", "number"])
def test_split(source_of: SourceOf, inline: dict[str, Any]) -> None:
    x = floats(2, 4)
    attributes = {"axis": 1} if inline else {"axis": 1, "num_outputs": 2}
    node = helper.make_node("Split", ["x", *inline], ["y", "z"], **attributes)
    results = [x[:, :1], x[:, 1:]] if inline else [x[:, :2], x[:, 2:]]
    infos = [info(name, array) for name, array in zip(("y", "z"), results, strict=True)]
    found = Torch().load(source_of("torch", [node], [info("x", x)], infos, inline)).run([x], [None, None])
    for one, other in zip(found, results, strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("given", [3, 4, 7])
def test_lstm(source_of: SourceOf, direction: str, given: int) -> None:
    """With the weights alone, with biases, and with initial states; against onnxruntime."""
    sides, hidden = (2 if direction == "bidirectional" else 1), 4
    x, names = floats(5, 2, 3), ["x", "w", "r", "b", "", "h", "c"][:given]
    weights = {"w": floats(sides, 16, 3), "r": floats(sides, 16, hidden), "b": floats(sides, 32)}
    weights |= {name: floats(sides, 2, hidden) for name in "hc"}
    inline = {name: array for name, array in weights.items() if name in names}
    node = helper.make_node("LSTM", names, ["y", "yh", "yc"], hidden_size=hidden, direction=direction)
    shapes = {"y": (5, sides, 2, hidden), "yh": (sides, 2, hidden), "yc": (sides, 2, hidden)}
    infos = [info(name, floats(*shape)) for name, shape in shapes.items()]
    expected, found = (
        toolchain(each).load(source_of(each, [node], [info("x", x)], infos, inline)).run([x], [None] * 3)
        for each in ("onnxruntime", "torch")
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5, atol=1e-6)


def test_lstm_with_lengths(source_of: SourceOf) -> None:
    x, inline = (
        floats(5, 2, 3),
        {"w": floats(1, 16, 3), "r": floats(1, 16, 4), "n": np.array([5, 3], np.int32)},
    )
    node = helper.make_node("LSTM", ["x", "w", "r", "", "n"], ["y"], hidden_size=4)
    made = source_of("torch", [node], [info("x", x)], [info("y", floats(5, 1, 2, 4))], inline)
    with pytest.raises(CompileError, match="operator 'LSTM' with lengths of sequences or peepholes"):
        Torch().load(made)


@pytest.mark.parametrize(
    ("operator", "attributes", "problem"),
    [
        (
            "Conv",
            {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"},
            "operator 'Conv' with auto_pad \"SAME_UPPER\"",
        ),
        ("MaxPool", {"kernel_shape": [2, 2], "ceil_mode": 1}, "operator 'MaxPool' with ceil_mode"),
        (
            "ConvTranspose",
            {"kernel_shape": [3, 3], "output_shape": [18, 16]},
            "operator 'ConvTranspose' with output_shape",
        ),
        ("LSTM", {"hidden_size": 4, "clip": 1.0}, "operator 'LSTM' with clip"),
        ("LSTM", {"hidden_size": 4, "layout": 1}, "operator 'LSTM' with the batch first"),
        (
            "LSTM",
            {"hidden_size": 4, "activations": ["Tanh", "Tanh", "Tanh"]},
            "with the activations Tanh, Tanh, Tanh",
        ),
        ("LRN", {"size": 4}, "operator 'LRN' with an even size"),
        ("MaxPool", {"kernel_shape": [2] * 4}, "operator 'MaxPool' over 4 axes"),
        ("AveragePool", {"kernel_shape": [2, 2], "pads": [1, 0, 0, 0]}, "with uneven pads that do not count"),
        ("Reshape", {}, "operator 'Reshape' with an input 1 that is only known at run time"),
        ("Det", {}, "operator 'Det' has no rule"),
    ],
)
def test_what_is_not_covered(
    source_of: SourceOf, operator: str, attributes: dict[str, Any], problem: str
) -> None:
    x = floats(*IMAGE)
    node = helper.make_node(operator, ["x", "w"], ["y"], **attributes)
    with pytest.raises(CompileError) as caught:
        Torch().load(source_of("torch", [node], [info("x", x), info("w", x)], [info("y", x)]))
    assert caught.value.problem.startswith("torch cannot compile this: ")
    assert problem in caught.value.problem


def test_one_program_of_all_operators(source_of: SourceOf) -> None:
    weight = floats(6, 4, 3, 3)
    nodes = [
        helper.make_node("Conv", ["x", "a.weight"], ["c"], kernel_shape=[3, 3]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Softmax", ["r"], ["y"], axis=1),
    ]
    y = floats(1, 6, 7, 6)
    made = source_of("torch", nodes, [info("x", floats(*IMAGE))], [info("y", y)], {"a.weight": weight})
    compiled = replace(made, target=str(Target(made.target).with_options(compiled=True)))
    plain, program = Torch().load(made), Torch().load(compiled)
    for seed in range(2):
        x = np.random.default_rng(seed).standard_normal(IMAGE).astype(np.float32)
        (expected,), (found,) = (kernel.run([x], [None]) for kernel in (plain, program))
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5, atol=1e-6)
    assert isinstance(program, ClosableKernel)
    program.close()
    with pytest.raises(UsageError, match="closed"):
        program.run([x], [None])


def test_a_compiler_that_is_missing(source_of: SourceOf, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def refuse(*_: object, **__: object) -> Callable[..., None]:
        def run(*_: object) -> None:
            raise RuntimeError("no compiler of C++")

        return run

    monkeypatch.setattr(torch, "compile", refuse)
    made = source_of("torch", [helper.make_node("Relu", ["x"], ["y"])], [info("x", A)], [info("y", A)])
    compiled = replace(made, target=str(Target(made.target).with_options(compiled=True)))
    with pytest.raises(CompileError, match=r"torch cannot compile this: .*no compiler of C\+\+"):
        Torch().load(compiled)


def test_an_operator_that_fails(source_of: SourceOf) -> None:
    node = helper.make_node("MatMul", ["x", "x"], ["y"])
    kernel = Torch().load(source_of("torch", [node], [info("x", A)], [info("y", A)]))
    with pytest.raises(ExecutionError, match="torch failed: RuntimeError"):
        kernel.run([A], [None])


def test_which_calls_are_worthwhile() -> None:
    x = Var("x", checked_type=TensorType((2, 3), "float32"))  # type: ignore[arg-type]  # the constructor takes the spelling
    shape = Var("s", checked_type=TensorType((1,), "int64"))  # type: ignore[arg-type]  # as above
    supports = Torch().supports
    assert supports(call("Add", x, x))
    assert supports(call("Reshape", x, Constant(ints(-1))))
    assert not supports(call("Reshape", x, shape))
    assert not supports(Call(Op("Det"), (x,)))
    assert not supports(Call(Op("device_copy", "intarsia"), (x,)))
