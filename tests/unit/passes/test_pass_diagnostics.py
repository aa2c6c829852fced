"""Shipped passes say where they decline, and why."""

from __future__ import annotations

import numpy as np
import pytest

from intarsia.ir import Constant, DType, Expr, Function, IRModule, SymbolicDim, TensorType, Var, with_fields
from intarsia.ir.parser import parse_module
from intarsia.op import call
from intarsia.passes import (
    AnnotateQuantization,
    BackwardFoldScaleAxis,
    CombineParallelConv2D,
    ConvertLayout,
    DecomposeRecurrent,
    FoldConstant,
    ForwardFoldScaleAxis,
    FuseOps,
    InferType,
    ToMixedPrecision,
    UnrollLoops,
)
from intarsia.target import DeviceType, VirtualDevice
from intarsia.transform import Pass, PassContext, Sequential
from intarsia.transform.instrument import Diagnostics


def said(item: Pass, mod: IRModule) -> list[str]:
    """What a pass says of a program, a line a statement."""
    diagnostics = Diagnostics(f"^{item.info.name}: ")
    with PassContext(opt_level=4, instruments=[diagnostics]):
        Sequential([InferType(), item])(mod)
    return diagnostics.render().splitlines()


def program(*params: Var, body: Expr) -> IRModule:
    return IRModule.from_expr(Function(params, body))


def image(name: str = "x") -> Var:
    return Var(name, checked_type=TensorType((1, 2, 4, 4), DType.FLOAT32))


def weight(name: str) -> Constant:
    return Constant(np.full((2, 2, 1, 1), len(name), np.float32))


def test_an_operator_of_unknown_rank_keeps_its_layout() -> None:
    x = Var("x", checked_type=TensorType(None, DType.FLOAT32))
    mod = program(x, body=call("GlobalAveragePool", x))
    assert said(ConvertLayout("NHWC"), mod) == [
        "missed: ConvertLayout: GlobalAveragePool %0 keeps its layout: its rank is unknown"
    ]


def test_a_transpose_that_cannot_be_moved() -> None:
    mod = parse_module(
        "def @main(%x: Tensor[(1, 2, 4, 4), float32]) {\n"
        "  Reshape(Transpose(%x, perm=[0, 3, 1, 2]), int64[4, 8])\n"
        "}\n"
    )
    assert said(ConvertLayout(), mod)[0] == (
        "missed: ConvertLayout: Reshape %1 needs values in their layout before: "
        "a transpose stays in front of it"
    )


def test_operators_of_kinds_that_are_not_fused() -> None:
    x = image()
    mod = program(x, body=call("Softmax", call("MatMul", x, x), axis=-1))
    (line, note) = said(FuseOps(), mod)
    assert line.startswith(
        "missed: FuseOps: MatMul %0 is not fused with what follows: operators of the kinds"
    )
    assert note == "  note: Softmax %1 uses its result"


def test_groups_that_would_be_too_large() -> None:
    x = image()
    mod = program(x, body=call("Relu", call("Neg", call("Abs", x))))
    assert said(FuseOps(max_depth=2), mod) == [
        "missed: FuseOps: Neg %1 is not fused with what follows: "
        "together they would be more than max_depth=2 operators",
        "  note: Relu %2 uses its result",
    ]
    assert said(FuseOps(), mod) == []


def test_operators_on_different_devices_are_not_fused() -> None:
    x = image()
    first = with_fields(call("Abs", x), virtual_device=VirtualDevice(DeviceType.CPU))
    mod = program(x, body=call("Neg", first))
    assert said(FuseOps(), mod)[0].endswith("they are on different devices")


def test_a_constant_that_would_be_too_large() -> None:
    shape = Constant(np.array([1000, 1000]))
    x = Var("x", checked_type=TensorType((SymbolicDim("n"), 1000), DType.FLOAT32))
    mod = program(x, body=call("Add", x, call("ConstantOfShape", shape)))
    (line,) = said(FoldConstant(max_bytes=1000), mod)
    assert "ConstantOfShape %0 is computed at run time, though its arguments are constants: " in line


@pytest.mark.parametrize("count", [2, 3])
def test_branches_that_are_too_few(count: int) -> None:
    x = image()
    branches = [call("Conv", x, weight("w" * (number + 1))) for number in range(count)]
    mod = program(x, body=call("Sum", *branches))
    lines = said(CombineParallelConv2D(min_num_branches=3), mod)
    if count == 3:
        assert lines == []
    else:
        assert lines == [
            "missed: CombineParallelConv2D: Conv %0 is not combined with parallel calls: "
            "there are 2, min_num_branches=3",
            "  note: Conv %1 has the same input",
        ]


def test_a_constant_that_a_narrow_type_cannot_hold() -> None:
    x = image()
    tiny = Constant(np.array(1e-12, np.float32))
    mod = program(x, body=call("Add", call("Conv", x, weight("w")), tiny))
    assert said(ToMixedPrecision(), mod) == [
        "missed: ToMixedPrecision: Add %1 keeps float32: a constant of it does not fit",
        "  note: Constant float32(1e-12) does not fit float16",
    ]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (UnrollLoops(most_iterations=4), "it has 5 iterations, most_iterations=4"),
        (UnrollLoops(most_calls=4), "it would become 5 calls, most_calls=4"),
    ],
)
def test_loops_that_are_too_long(item: Pass, reason: str) -> None:
    mod = parse_module(
        "def @main(%x: Tensor[(2,), float32]) {\n"
        "  %0 = fn (%i: Tensor[(), int64], %go: Tensor[(), bool], %s: Tensor[(2,), float32]) {\n"
        "    (%go, Relu(%s))\n"
        "  };\n"
        "  Loop(int64(5), (), %x, %0, outputs=1).0\n"
        "}\n"
    )
    (line,) = said(item, mod)
    assert line.endswith(f"is not unrolled: {reason}")


def test_a_scale_that_stays() -> None:
    x = image()
    conv = call("Conv", x, weight("w"))
    scaled = call("Mul", conv, Constant(np.full((1, 2, 1, 1), 3, np.float32)))
    (line,) = said(BackwardFoldScaleAxis(), program(x, body=call("Add", conv, scaled)))
    assert line == (
        "missed: BackwardFoldScaleAxis: Mul %1 is not moved into weights: what it multiplies has 2 uses"
    )
    assert said(BackwardFoldScaleAxis(), program(x, body=scaled)) == []


def test_a_scale_that_no_weights_behind_it_take() -> None:
    x = image()
    scaled = call("Mul", x, Constant(np.array([2, 3], np.float32).reshape(1, 2, 1, 1)))
    taken = program(x, body=call("Conv", scaled, weight("w")))
    assert said(ForwardFoldScaleAxis(), taken) == []
    assert said(ForwardFoldScaleAxis(), program(x, body=call("Softmax", scaled))) == [
        "missed: ForwardFoldScaleAxis: Mul %0 is not moved into weights behind it: "
        "not all uses of its result have weights"
    ]


def test_layers_that_are_not_quantised() -> None:
    x, y = image(), image("y")
    mod = program(x, y, body=call("Conv", call("Conv", call("MatMul", x, y), weight("w")), weight("v")))
    assert said(AnnotateQuantization(layers=(0,)), mod) == [
        "missed: AnnotateQuantization: MatMul %0 is not quantised: its weights are no constant",
        "missed: AnnotateQuantization: Conv %2 is not quantised: the option layers leaves it out",
    ]


def test_recurrent_layers_that_stay() -> None:
    x = Var("x", checked_type=TensorType((SymbolicDim("n"), 1, 3), DType.FLOAT32))
    w = Var("w", checked_type=TensorType((1, 16, 3), DType.FLOAT32))
    r = Var("r", checked_type=TensorType((1, 16, 4), DType.FLOAT32))
    mod = program(x, w, r, body=call("LSTM", x, w, r, outputs=3, hidden_size=4))
    assert said(DecomposeRecurrent(), mod) == [
        "missed: DecomposeRecurrent: LSTM %0 is not written as the operators of its steps: "
        "LSTM of a shape that is known only at run time"
    ]
