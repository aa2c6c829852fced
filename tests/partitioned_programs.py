"""Small programs whose parts belong to toolchains."""

from __future__ import annotations

import numpy as np

from intarsia.ir import Attrs, Call, Constant, DType, Expr, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.op import call
from intarsia.op.infer import typed
from intarsia.passes import InferType
from intarsia.target import Target

SIZE = 64


def weight(seed: int) -> Constant:
    """A matrix that keeps the size of values."""
    data = np.random.default_rng(seed).standard_normal((SIZE, SIZE)) / np.sqrt(SIZE)
    return Constant(data.astype(np.float32))


def matrix(name: str = "x") -> Var:
    """A parameter."""
    return Var(name, checked_type=TensorType((SIZE, SIZE), DType.FLOAT32))


def product(x: Expr, seed: int) -> Expr:
    """A layer: a product with a constant, and Relu."""
    return call("Relu", call("MatMul", x, weight(seed)))


def unpartitioned() -> IRModule:
    """Three layers that nobody was given."""
    x = matrix()
    return InferType()(IRModule.from_expr(Function((x,), product(product(product(x, 0), 1), 2))))


def partitioned(**targets: str) -> IRModule:
    """Three layers, each a global function of a target by its name; the last one a literal in @main."""
    x = matrix()
    value: Expr = x
    functions: dict[GlobalVar, Function] = {}
    for seed, (name, target) in enumerate(targets.items()):
        layer = _marked(name, target, seed)
        if seed == len(targets) - 1:
            value = typed(Call(layer, (value,)))
        else:
            var = GlobalVar(name, checked_type=layer.checked_type)
            functions[var] = layer
            value = typed(Call(var, (value,)))
    main = typed(Function((x,), value))
    assert isinstance(main, Function)
    return InferType()(IRModule({GlobalVar("main", checked_type=main.checked_type): main, **functions}))


def _marked(name: str, target: str, seed: int) -> Function:
    y = matrix("y")
    compiler = str(Target(target).toolchain)
    marks = Attrs({"Compiler": compiler, "target": target, "global_symbol": name})
    layer = typed(Function((y,), product(y, seed), marks))
    assert isinstance(layer, Function)
    return layer
