"""Input sets of several kinds."""

from __future__ import annotations

import numpy as np
import pytest

from intarsia.ir import DType, Function, IRModule, SymbolicDim, TensorType, Var
from intarsia.measure.inputs import InputKind, input_set, random_inputs, with_input_ranges
from intarsia.op import call


@pytest.mark.parametrize("kind", InputKind)
def test_declared_ranges_hold_in_every_set(kind: InputKind) -> None:
    x = Var("x", checked_type=TensorType((50,), DType.INT32))
    module = with_input_ranges(IRModule.from_expr(Function((x,), call("Neg", x))), {"x": (3, 6)})
    inputs = input_set(module["main"], random_inputs(module["main"]), kind)
    assert set(inputs["x"].tolist()) <= {3, 4, 5}
    assert len(set(inputs["x"].tolist())) > 1


@pytest.mark.parametrize("kind", [InputKind.LARGE, InputKind.EDGES])
@pytest.mark.parametrize("dtype", [DType.STRING, DType.INT4, DType.UINT4])
def test_strings_and_four_bit_integers_are_drawn_anew(kind: InputKind, dtype: DType) -> None:
    x = Var("x", checked_type=TensorType((50,), dtype))
    main = IRModule.from_expr(Function((x,), call("Identity", x)))["main"]
    ordinary = random_inputs(main)
    inputs = input_set(main, ordinary, kind)
    assert inputs["x"].dtype == ordinary["x"].dtype
    assert not np.array_equal(inputs["x"], ordinary["x"])


@pytest.mark.parametrize("kind", InputKind)
def test_lengths_are_within_an_axis_that_has_its_size_from_the_arrays(kind: InputKind) -> None:
    steps, batch = SymbolicDim("steps"), SymbolicDim("batch")
    x = Var("x", checked_type=TensorType((steps, batch), DType.FLOAT32))
    lengths = Var("lengths", checked_type=TensorType((batch,), DType.INT64))
    reversal = call("ReverseSequence", x, lengths, time_axis=0, batch_axis=1)
    main = IRModule.from_expr(Function((x, lengths), reversal))["main"]
    types = {"x": TensorType((2, 40), DType.FLOAT32), "lengths": TensorType((40,), DType.INT64)}
    inputs = input_set(main, random_inputs(main, 0, types), kind)
    assert set(inputs["lengths"].tolist()) == {1, 2}
