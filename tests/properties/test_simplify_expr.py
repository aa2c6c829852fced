"""Random programs full of what SimplifyExpr, CanonicalizeOps and FoldScaleAxis look for compute the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.pass_checks import checked

from intarsia.ir import Constant, DType, Expr, Function, If, IRModule, TensorType, Tuple, Var
from intarsia.op import call, tuple_get
from intarsia.passes import BackwardFoldScaleAxis, CanonicalizeOps, ForwardFoldScaleAxis, SimplifyExpr
from intarsia.transform import Pass

PASSES: tuple[Pass, ...] = (
    SimplifyExpr(),
    CanonicalizeOps(squeeze=True, sums=True),
    BackwardFoldScaleAxis(),
    ForwardFoldScaleAxis(),
)
EXAMPLES = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
SHAPE = (2, 4, 1, 4)
FLAG = TensorType((), DType.BOOL)


def const(values: Any, dtype: Any = np.float32) -> Constant:
    return Constant(np.asarray(values, dtype))


class Writer:
    """Adds steps that turn a tensor of `SHAPE` into another of that shape."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 99)))

    def pick(self, *items: Any) -> Any:
        return self.draw(st.sampled_from(items))

    def step(self, values: list[Expr], flag: Expr) -> Expr:
        kinds: tuple[Callable[[Expr, Expr, Expr], Expr], ...] = (
            *(self.unary, self.binary, self.total, self.factor, self.shift, self.clamp, self.cast),
            *(self.shape, self.transpose, self.join, self.copy, self.layer, self.layer, self.branch),
        )
        x, y = (self.draw(st.sampled_from(values)) for _ in range(2))
        return self.draw(st.sampled_from(kinds))(x, y, flag)

    def unary(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        return call(self.pick("Neg", "Relu", "Abs", "Floor", "LeakyRelu", "Identity"), x)

    def binary(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        return call(self.pick("Add", "Sub", "Max", "Min"), x, y)

    def total(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        return call(self.pick("Sum", "Mean"), x, y, *self.pick((), (x,)))

    def channel(self) -> Constant:
        shape = self.pick((), (1, 1), (4, 1, 1), (1, 4, 1, 1), (4,))
        return self.pick(  # type: ignore[no-any-return]  # picks one of its arguments
            const(np.full(shape, self.pick(0, 1))), const(self.rng.uniform(self.pick(-1.5, 0.5), 1.5, shape))
        )

    def factor(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        factor = self.channel()
        return call("Mul", *self.pick((x, factor), (factor, x)))

    def shift(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        return call(self.pick("Add", "Sub"), x, self.channel())

    def clamp(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        return call("Clip", x, const(self.pick(-1, 0, 0.5)), const(self.pick(0.25, 1, 6)))

    def cast(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        return call("Cast", call("Cast", x, to=self.pick(11, 1)), to=1)

    def shape(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        inner = self.pick(
            call("Flatten", x, axis=self.pick(0, 1, 2, 4)),
            call("Unsqueeze", x, const([self.pick(0, 1, -1)], np.int64)),
            call("Squeeze", x, const([2], np.int64)),
            call("Reshape", x, const([0, -1], np.int64)),
        )
        return call("Reshape", inner, const(self.pick(SHAPE, (2, -1, 1, 4)), np.int64))

    def transpose(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        return call("Transpose", x, perm=self.pick((0, 3, 2, 1), (0, 1, 2, 3)))

    def join(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        axis = self.pick(0, 1)
        joined = call("Concat", call("Concat", x, y, axis=axis), x, axis=axis)
        parts = call("Split", joined, axis=axis, num_outputs=3, outputs=3)
        return tuple_get(parts, self.pick(0, 1, 2))

    def copy(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        return self.pick(  # type: ignore[no-any-return]  # picks one of its arguments
            call("Tile", x, const([1, 1, 1, 1], np.int64)),
            call("Expand", x, const([4, 1, 1], np.int64)),
            call("Slice", x, const([0], np.int64), const([9], np.int64)),
            call("ReduceMean", x, const([2], np.int64)),
            call("Where", const(self.pick(True, False), np.bool_), x, y),
            call("MaxPool", x, kernel_shape=(1, 1)),
        )

    def layer(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        small = 0.3 * self.rng.normal(size=(4, 4))
        wide = call("Pad", x, const([0, 0, 0, 1, 0, 0, 0, 0], np.int64))
        return self.pick(  # type: ignore[no-any-return]  # picks one of its arguments
            call("MatMul", x, const(small)),
            call("Conv", x, const(small.reshape(4, 4, 1, 1)), const(small[0])),
            call("Conv", x, const(small[:, :3].reshape(4, 1, 1, 3)), group=4, auto_pad="SAME_UPPER"),
            call("Conv", wide, const(small[:, :2].reshape(4, 1, 1, 2)), group=4),
            call("ConvTranspose", x, const(small.reshape(4, 4, 1, 1))),
        )

    def branch(self, x: Expr, y: Expr, flag: Expr) -> Expr:
        return If(flag, self.factor(x, y, flag), self.unary(y, x, flag), checked_type=x.checked_type)


@st.composite
def simplifiable(draw: st.DrawFn) -> IRModule:
    x, flag = Var("x", checked_type=TensorType(SHAPE, DType.FLOAT32)), Var("flag", checked_type=FLAG)
    writer = Writer(draw)
    values: list[Expr] = [x]
    for _ in range(draw(st.integers(2, 12))):
        values.append(writer.step(values, flag))
    results = draw(st.lists(st.sampled_from(values), max_size=2))
    return IRModule.from_expr(Function((x, flag), Tuple((*results, values[-1]))))


@pytest.mark.parametrize("made", PASSES, ids=str)
@EXAMPLES
@given(mod=simplifiable())
def test_programs_compute_the_same(made: Pass, mod: IRModule) -> None:
    checked(made, mod, rtol=1e-4, atol=1e-4)
