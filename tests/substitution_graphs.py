"""Random graphs of matrices and images, full of what substitution rules look for; results are finite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Tuple, Var
from intarsia.op import call, infer_types, tuple_get

MATRIX, IMAGE = (4, 4), (2, 4, 6, 6)


@dataclass(slots=True)
class RandomGraph:
    """A graph that grows from two matrices and two images; each operator takes what the last ones made.

    Attributes:
        rng: Decides.
        matrices: Values of that shape.
        images: Values of that shape.
    """

    rng: Random
    matrices: list[Expr] = field(default_factory=list)
    images: list[Expr] = field(default_factory=list)

    @classmethod
    def program(cls, seed: int, size: int) -> IRModule:
        """A program of `size` random groups of operators."""
        shapes = {"a": MATRIX, "b": MATRIX, "c": IMAGE, "d": IMAGE}
        params = {
            name: Var(name, checked_type=TensorType(shape, DType.FLOAT32)) for name, shape in shapes.items()
        }
        graph = cls(Random(seed), [params["a"], params["b"]], [params["c"], params["d"]])
        for _ in range(size):
            of_matrices = graph.rng.random() < 0.5
            kinds, values = (
                (graph.on_matrices, graph.matrices) if of_matrices else (graph.on_images, graph.images)
            )
            x, y = (graph.recent(values) for _ in range(2))
            values += graph.rng.choice(kinds)(x, y)
        body = Tuple((*graph.matrices[-2:], *graph.images[-2:]))
        return infer_types(IRModule.from_expr(Function(tuple(params.values()), body)))

    def recent(self, values: Sequence[Expr]) -> Expr:
        """One of the last values."""
        return self.rng.choice(values[-4:])

    def weights(self, *shape: int) -> Constant:
        """Numbers that keep values small."""
        data = np.random.default_rng(self.rng.randrange(1 << 30)).uniform(-0.5, 0.5, shape)
        return Constant(data.astype(np.float32))

    def number(self) -> Constant:
        return Constant(np.array(self.rng.choice([0.5, 0.75, 1.25]), np.float32))

    def unary(self, x: Expr) -> Expr:
        return call(self.rng.choice(["Relu", "Tanh", "Sigmoid", "Neg", "Abs", "LeakyRelu"]), x)

    def pair(self, x: Expr, y: Expr) -> Expr:
        return call(self.rng.choice(["Add", "Sub", "Max"]), x, y)

    @property
    def on_matrices(self) -> tuple[Callable[[Expr, Expr], list[Expr]], ...]:
        """Groups of operators that make matrices of matrices."""
        back = ints(4, 4)
        return (
            lambda x, y: [call("MatMul", x, self.weights(4, 4)), call("MatMul", x, self.weights(4, 4))],
            lambda x, y: [call("Mul", call("MatMul", x, y), Constant(np.array(0.25, np.float32)))],
            lambda x, y: [
                call(
                    "Tanh",
                    call("Add", call("MatMul", x, self.weights(4, 4)), call("MatMul", y, self.weights(4, 4))),
                )
            ],
            lambda x, y: [call("Gemm", x, self.weights(4, 4), self.weights(4), transB=self.rng.randrange(2))],
            lambda x, y: [call("Add", call("MatMul", x, self.weights(4, 4)), self.weights(4))],
            lambda x, y: [self.pair(self.unary(x), self.unary(y))],
            lambda x, y: [call("Transpose", self.unary(call("Transpose", x)))],
            lambda x, y: [call("Transpose", call("MatMul", call("Transpose", x), self.weights(4, 4)))],
            lambda x, y: [call("Reshape", self.unary(call("Reshape", x, ints(2, 8))), back)],
            lambda x, y: [call("Softmax", call("Mul", x, self.number()), axis=self.rng.choice([0, 1]))],
            lambda x, y: [call("Mul", x, call("ReduceMean", self.pair(x, y), ints(1)))],
            lambda x, y: [call("Add", x, call("ReduceMax", call("Relu", y), ints(0)))],
            lambda x, y: [call("Div", call("Mul", call("Tanh", x), self.number()), self.number())],
            lambda x, y: self.halves(call("Concat", self.unary(x), y, axis=1)),
            lambda x, y: [call("Log", call("Softmax", call("Tanh", x), axis=1))],
        )

    @property
    def on_images(self) -> tuple[Callable[[Expr, Expr], list[Expr]], ...]:
        """Groups of operators that make images of images."""
        window: dict[str, Any] = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "strides": (1, 1)}
        around = ints(0, 0, 1, 1, 0, 0, 1, 1)
        return (
            lambda x, y: [self.convolution(x, 1), self.convolution(x, 3)],
            lambda x, y: [self.convolution(x, 3), self.convolution(x, 3)],
            lambda x, y: [call("Add", self.convolution(x, 3), self.convolution(y, 3))],
            lambda x, y: [call("Add", self.convolution(x, 3), x)],
            lambda x, y: [self.convolution(self.convolution(x, 1), self.rng.choice([1, 3]))],
            lambda x, y: [call("Conv", call("Pad", self.unary(x), around), self.weights(4, 4, 3, 3))],
            lambda x, y: [call("Conv", call("Concat", x, y, axis=1), self.weights(4, 8, 1, 1))],
            lambda x, y: [call("Conv", x, self.weights(4, 2, 1, 1), self.weights(4), group=2)],
            lambda x, y: [call("Mul", self.convolution(x, 1), self.weights(4, 1, 1))],
            lambda x, y: [self.unary(call("MaxPool", call("Relu", x), **window))],
            lambda x, y: [call("AveragePool", call("Add", x, y), **window)],
            lambda x, y: [call("Mul", x, call("GlobalAveragePool", self.unary(y)))],
            lambda x, y: self.halves(call("Concat", self.convolution(x, 1), self.convolution(x, 1), axis=1)),
            lambda x, y: self.halves(call("MaxPool", call("Concat", x, y, axis=1), **window)),
        )

    def convolution(self, x: Expr, size: int) -> Expr:
        bias = [self.weights(4)] if self.rng.random() < 0.5 else []
        return call("Conv", x, self.weights(4, 4, size, size), *bias, pads=(size // 2,) * 4)

    def halves(self, x: Expr) -> list[Expr]:
        split = call("Split", self.unary(x), ints(4, 4), axis=1, outputs=2)
        return [tuple_get(split, 0), tuple_get(split, 1)]


def ints(*values: int) -> Constant:
    return Constant(np.array(values, np.int64))
