"""Programs that round to steps on the way: a flipped rounding is honest, a flipped mask is not."""

from __future__ import annotations

import numpy as np

from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Tuple, Var
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.quantised_outputs import quantised_outputs
from intarsia.op import call


def constant(value: object, dtype: str) -> Constant:
    return Constant(np.array(value, dtype))


def quantised(x: Expr) -> Expr:
    return call("QuantizeLinear", x, constant(0.05, "float32"), constant(128, "uint8"))


def program() -> IRModule:
    """Quantised integers, the same as numbers, and a mask as bytes."""
    x = Var("x", checked_type=TensorType((4, 16), DType.FLOAT32))
    weight = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)
    steps = quantised(call("MatMul", x, Constant(weight)))
    numbers = call("DequantizeLinear", steps, constant(0.05, "float32"), constant(128, "uint8"))
    mask = call("Cast", call("Greater", x, constant(0.0, "float32")), to=2)
    return IRModule.from_expr(Function((x,), Tuple((steps, numbers, mask))))


def test_outputs_that_were_quantised_have_steps() -> None:
    steps = quantised_outputs(program())
    assert set(steps) == {0, 1}
    assert steps[0] == 1.0
    assert 0.05 < steps[1] < 0.051


def test_one_step_is_allowed_and_a_flipped_mask_is_not() -> None:
    module = program()
    gate = Gate.for_module(module, random_inputs(module["main"]))
    integers, numbers, mask = gate.expected
    one_off = integers.copy()
    one_off[1, 3] += 1 if one_off[1, 3] < 255 else -1
    moved = numbers.copy()
    moved[1, 3] += np.float32(0.05)
    assert gate.check([one_off, moved, mask]).passed
    assert not gate.check([integers, numbers, 1 - mask]).passed
    assert not gate.check([integers, numbers + np.float32(0.2), mask]).passed
    assert not gate.check([integers + np.uint8(2), numbers, mask]).passed
