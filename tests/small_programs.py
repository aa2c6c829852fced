"""Small programs on vectors of four floats, and running them against a naive evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.numpy_toolchain import evaluate, flat

from intarsia.build import build
from intarsia.ir import Attrs, Call, Expr, Function, If, IRModule, TensorType, Var, with_fields
from intarsia.op import call
from intarsia.runtime.executable import Executable
from intarsia.runtime.plan_check import plan_complaint

VECTOR = TensorType((4,), "float32")  # type: ignore[arg-type]  # the constructor takes the spelling
SCALAR = TensorType((), "float32")  # type: ignore[arg-type]  # as above
FLAG = TensorType((), "bool")  # type: ignore[arg-type]  # as above
X = np.arange(4, dtype=np.float32) - 1


def vector(name: str) -> Var:
    return Var(name, checked_type=VECTOR)


def marked(function: Function, **attrs: str) -> Function:
    return with_fields(function, attrs=Attrs({"Compiler": "numpy", **attrs}))


def applied(function: Expr, *args: Expr, type_: Any = VECTOR) -> Call:
    return Call(function, args, checked_type=type_)


def doubling() -> Function:
    x = vector("p")
    return Function((x,), call("Add", x, x))


def conditional(x: Expr, flag: Expr, true: Expr, false: Expr) -> If:
    return If(flag, true, false, checked_type=VECTOR)


def checked(mod: IRModule, *inputs: np.ndarray[Any, Any]) -> Executable:
    """Build, and compare a run with the naive evaluator."""
    exe = build(mod)
    assert plan_complaint(exe.plan, len(exe.kernels), len(exe.plan.blocks) * 99) == ""
    expected = flat(evaluate(mod["main"], inputs, mod))
    found = exe.run_flat(*inputs)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)
    return exe
