"""Random small networks over real operators, with constants as weights: what heuristic passes work on.

Every value is a float32 tensor (N, C, H, W) or (N, K), of shapes known at compile time; results are finite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from tests.properties.cheap_draws import BOOLEANS, choose, choose_some, integers

from intarsia.ir import Constant, DType, Expr, Function, GlobalVar, If, IRModule, TensorType, Tuple, Var
from intarsia.op import absent, call, tuple_get

IMAGE = (2, 4, 6, 6)


@st.composite
def networks(draw: st.DrawFn, *, steps: int = 8) -> IRModule:
    """A network of an image and a flag, whose @main returns up to three tensors.

    Args:
        draw: Hypothesis' source of choices.
        steps: The largest number of layers.
    """
    image = Var("image", checked_type=TensorType(IMAGE, DType.FLOAT32))
    flag = Var("flag", checked_type=TensorType((), DType.BOOL))
    layers = _Layers(draw, flag, np.random.default_rng(draw(integers(0, 99))))
    values: list[Expr] = [image]
    for _ in range(draw(integers(1, steps))):
        values += layers.step(values)
    chosen = choose_some(draw, values, 1, 3)
    body = chosen[0] if len(chosen) == 1 else Tuple(tuple(chosen))
    main = Function((image, flag), body)
    return IRModule({GlobalVar("main", checked_type=main.checked_type): main})


def shape_of(expr: Expr) -> tuple[int, ...]:
    type_ = expr.checked_type
    assert isinstance(type_, TensorType)
    assert type_.shape is not None
    return tuple(dim for dim in type_.shape if isinstance(dim, int))


@dataclass(slots=True)
class _Layers:
    draw: st.DrawFn
    flag: Var
    rng: np.random.Generator

    def step(self, values: list[Expr]) -> list[Expr]:
        """New values made of earlier ones."""
        x = choose(self.draw, values)
        rank = len(shape_of(x))
        kinds: tuple[Callable[[Expr, list[Expr]], list[Expr]], ...]
        kinds = self.image_layers if rank == 4 else self.vector_layers
        return choose(self.draw, (*kinds, *self.any_layers))(x, values)

    @property
    def image_layers(self) -> tuple[Callable[[Expr, list[Expr]], list[Expr]], ...]:
        return (
            self.conv,
            self.branches,
            self.norm,
            self.pool,
            self.split,
            self.flatten,
            self.shuffle,
            self.conv,
        )

    @property
    def vector_layers(self) -> tuple[Callable[[Expr, list[Expr]], list[Expr]], ...]:
        return (self.dense, self.gemm, self.projections, self.softmax)

    @property
    def any_layers(self) -> tuple[Callable[[Expr, list[Expr]], list[Expr]], ...]:
        return (
            self.activation,
            self.arithmetic,
            self.residual,
            self.transposed,
            self.reshaped,
            self.trivial,
            self.branch,
        )

    def weights(self, *shape: int, positive: bool = False) -> Constant:
        data = self.rng.uniform(0.5 if positive else -1, 1.5 if positive else 1, shape)
        return Constant(data.astype(np.float32))

    def ints(self, *values: int) -> Constant:
        return Constant(np.array(values, np.int64))

    def conv(self, x: Expr, values: list[Expr]) -> list[Expr]:
        channels = shape_of(x)[1]
        group = choose(self.draw, [1, 1, channels])
        out = choose(self.draw, [channels, 2 * channels]) if channels < 16 else channels
        size = choose(self.draw, [1, 3])
        weight = self.weights(out, channels // group, size, size)
        bias = [self.weights(out)] if self.draw(BOOLEANS) else []
        pads = (size // 2,) * 4
        return [call("Conv", x, weight, *bias, kernel_shape=(size, size), pads=pads, group=group)]

    def branches(self, x: Expr, values: list[Expr]) -> list[Expr]:
        """Parallel 1x1 convolutions, with Relu or without, joined again."""
        channels = shape_of(x)[1]
        relu = self.draw(BOOLEANS)
        made = []
        for _ in range(self.draw(integers(2, 4))):
            out: Expr = call("Conv", x, self.weights(2, channels, 1, 1), self.weights(2), kernel_shape=(1, 1))
            made.append(call("Relu", out) if relu else out)
        return [call("Concat", *made, axis=1)]

    def norm(self, x: Expr, values: list[Expr]) -> list[Expr]:
        channels = shape_of(x)[1]
        facts = [self.weights(channels, positive=position in (0, 3)) for position in range(4)]
        return [call("BatchNormalization", x, *facts, epsilon=1e-3)]

    def pool(self, x: Expr, values: list[Expr]) -> list[Expr]:
        if min(shape_of(x)[2:]) < 3:
            return [call("GlobalAveragePool", x)]
        name = choose(self.draw, ["MaxPool", "AveragePool"])
        return [call(name, x, kernel_shape=(3, 3), pads=(1, 1, 1, 1), strides=(1, 1))]

    def split(self, x: Expr, values: list[Expr]) -> list[Expr]:
        channels = shape_of(x)[1]
        if channels < 2 or channels % 2:
            return [call("Identity", x)]
        halves = call("Split", x, self.ints(channels // 2, channels // 2), outputs=2, axis=1)
        return [tuple_get(halves, 0), tuple_get(halves, 1)]

    def flatten(self, x: Expr, values: list[Expr]) -> list[Expr]:
        return [call("Flatten", call("GlobalAveragePool", x))]

    def shuffle(self, x: Expr, values: list[Expr]) -> list[Expr]:
        """A channel shuffle: reshape, transpose, reshape."""
        n, channels, height, width = shape_of(x)
        if channels % 2:
            return [call("Relu", x)]
        groups = call("Reshape", x, self.ints(n, 2, channels // 2, height, width))
        turned = call("Transpose", groups, perm=(0, 2, 1, 3, 4))
        return [call("Reshape", turned, self.ints(0, channels, height, -1))]

    def dense(self, x: Expr, values: list[Expr]) -> list[Expr]:
        return [call("MatMul", x, self.weights(shape_of(x)[1], 4))]

    def gemm(self, x: Expr, values: list[Expr]) -> list[Expr]:
        turned = self.draw(BOOLEANS)
        inner = shape_of(x)[1]
        weight = self.weights(4, inner) if turned else self.weights(inner, 4)
        alpha = choose(self.draw, [1.0, 0.5])
        return [call("Gemm", x, weight, self.weights(4), transB=int(turned), alpha=alpha)]

    def projections(self, x: Expr, values: list[Expr]) -> list[Expr]:
        """Parallel products of one value, with biases or without."""
        inner, biased = shape_of(x)[1], self.draw(BOOLEANS)
        made = []
        for _ in range(self.draw(integers(2, 4))):
            out: Expr = call("MatMul", x, self.weights(inner, 3))
            made.append(call("Add", out, self.weights(3)) if biased else out)
        return made

    def softmax(self, x: Expr, values: list[Expr]) -> list[Expr]:
        return [call("Softmax", x, axis=-1)]

    def activation(self, x: Expr, values: list[Expr]) -> list[Expr]:
        name = choose(self.draw, ["Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Clip", "Neg"])
        if name == "Clip":
            high = Constant(np.array(np.float32(6))) if self.draw(BOOLEANS) else absent()
            return [call("Clip", x, Constant(np.array(np.float32(-1))), high)]
        return [call(name, x)]

    def arithmetic(self, x: Expr, values: list[Expr]) -> list[Expr]:
        """With a constant: a scalar, one number a channel, or a neutral element."""
        name = choose(self.draw, ["Add", "Sub", "Mul", "Div"])
        neutral = np.float32(name in ("Mul", "Div"))
        per_channel = (shape_of(x)[1], 1, 1) if len(shape_of(x)) == 4 else (shape_of(x)[1],)
        others = [
            self.weights(*per_channel, positive=True),
            self.weights(positive=True),
            Constant(np.array(neutral)),
            Constant(np.full((1, *per_channel), neutral)),
        ]
        other = choose(self.draw, others)
        pair = (x, other) if name in ("Sub", "Div") or self.draw(BOOLEANS) else (other, x)
        return [call(name, *pair)]

    def residual(self, x: Expr, values: list[Expr]) -> list[Expr]:
        same = [value for value in values if shape_of(value) == shape_of(x)]
        return [call("Add", x, choose(self.draw, same))]

    def transposed(self, x: Expr, values: list[Expr]) -> list[Expr]:
        """There and back, with something that does not mind in between."""
        perm = (0, 2, 3, 1) if len(shape_of(x)) == 4 else (1, 0)
        back = tuple(int(item) for item in np.argsort(perm))
        inside: Expr = call("Transpose", x, perm=perm)
        if self.draw(BOOLEANS):
            inside = call("Relu", inside)
        return [call("Transpose", inside, perm=back)]

    def reshaped(self, x: Expr, values: list[Expr]) -> list[Expr]:
        """There and back, by Reshape, Squeeze and Unsqueeze."""
        if self.draw(BOOLEANS):
            return [call("Squeeze", call("Unsqueeze", x, self.ints(1)), self.ints(1))]
        flat = call("Reshape", x, self.ints(shape_of(x)[0], -1))
        return [call("Reshape", flat, self.ints(*shape_of(x)))]

    def trivial(self, x: Expr, values: list[Expr]) -> list[Expr]:
        name = choose(self.draw, ["Identity", "Dropout", "Cast", "twice"])
        match name:
            case "Cast":
                return [call("Cast", call("Cast", x, to=11), to=1)]
            case "Dropout":
                return [call("Dropout", x)]
            case "twice":
                return [call("Relu", call("Relu", x)), call("Neg", call("Neg", x))]
            case _:
                return [call("Identity", x)]

    def branch(self, x: Expr, values: list[Expr]) -> list[Expr]:
        """An If whose branches use what is outside."""
        same = [value for value in values if shape_of(value) == shape_of(x)]
        other = choose(self.draw, same)
        true: Expr = call("Relu", call("Add", x, other))
        false: Expr = call("Mul", other, Constant(np.array(np.float32(2))))
        return [If(self.flag, true, false, checked_type=x.checked_type)]


def random_inputs(seed: int = 0) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """Arrays for the parameters of a network."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, IMAGE).astype(np.float32), np.array(bool(seed % 2))]
