"""Input sets of several kinds."""

from __future__ import annotations

import numpy as np
import pytest

from intarsia.ir import DType, Function, IRModule, TensorType, Var
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
