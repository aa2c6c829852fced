"""A program bound to several numbers of tokens, and the values that it computes from that number alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy.typing as npt

from intarsia.ir import Call, Constant, Expr, Function, Op, SymbolicDim, Tuple, post_order, with_fields
from intarsia.op.evaluate import evaluate_call
from intarsia.op.known_value import known_value
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import facts_of
from intarsia.op.purity import is_random
from intarsia.passes.bind_dims import bind_function
from intarsia.passes.rules.tensor_facts import static_shape_of
from intarsia.support.errors import IntarsiaError

Array = npt.NDArray[Any]
Fact = TypeVar("Fact")
LENGTHS: Final = (29, 37, 5)
"""Numbers of tokens at which programs are compared. Primes, so that no other extent is a multiple of them by
chance, and small, since tables of positions may be short."""


class TokenTwins:
    """The expressions of a program, each bound to some numbers of tokens.

    An expression is *free* if it reads no element of a parameter: constants, and what shapes determine.

    Args:
        function: Typed program whose only symbolic dimension of parameters is the number of tokens.
        symbol: Name of the dimension.
        most: Maximum number of tokens.

    Attributes:
        function: The program.
        most: Maximum number of tokens.
        free: Its free expressions.
    """

    def __init__(self, function: Function, symbol: str, most: int) -> None:
        self.function = function
        self.most = most
        self.free = _free(function)
        self._dim = SymbolicDim(symbol)
        self._bound: dict[int, dict[Expr, Expr]] = {}
        self._values: dict[tuple[int, Expr], Array | None] = {}

    def bound(self, tokens: int) -> dict[Expr, Expr]:
        """Return the expressions for a number of tokens.

        Raises:
            InvalidModelError: The program takes no such number.
        """
        if tokens not in self._bound:
            after = bind_function(self.function, {self._dim: tokens})
            self._bound[tokens] = dict(zip(post_order(self.function), post_order(after), strict=True))
        return self._bound[tokens]

    def shape(self, node: Expr, tokens: int) -> tuple[int, ...] | None:
        """Return the shape of a tensor for a number of tokens; None if it is not known.

        Raises:
            InvalidModelError: The program takes no such number.
        """
        return static_shape_of(self.bound(tokens)[node])

    def value(self, node: Expr, tokens: int) -> Array | None:
        """Return the value of a free expression; None if it has none, such as a tuple.

        Raises:
            InvalidModelError: The program takes no such number.
        """
        for inner in post_order(node):
            if (tokens, inner) not in self._values and inner in self.free:
                self._values[tokens, inner] = self._evaluated(inner, tokens)
        return self._values.get((tokens, node))

    def common(self, node: Expr, fact: Callable[[Array | None], Fact | None]) -> Fact | None:
        """Return what holds for the values of a free expression for all compared numbers of tokens, or None.

        What small numbers have in common is compared for the most tokens as well. These values are forgotten:
        they are large where there is one for each pair of tokens.

        Args:
            node: Free expression.
            fact: Function from a value to the fact; None where there is none.

        Raises:
            InvalidModelError: The program takes no such number.
        """
        first = fact(self.value(node, LENGTHS[0]))
        for tokens in (*LENGTHS[1:], self.most):
            if first is None or fact(self.value(node, tokens)) != first:
                return None
        for key in [key for key in self._values if key[0] == self.most]:
            del self._values[key]
        return first

    def number(self, node: Expr) -> float | None:
        """Return the only element of a free expression, the same for all numbers of tokens; None for others.

        Raises:
            InvalidModelError: The program takes no such number.
        """
        return self.common(node, _only_number) if node in self.free else None

    def _evaluated(self, node: Expr, tokens: int) -> Array | None:
        twin = self.bound(tokens)[node]
        value = known_value(twin)
        if value is not None or isinstance(twin, Constant):
            return twin.data if isinstance(twin, Constant) else value
        if not isinstance(twin, Call) or not isinstance(node, Call):
            return None
        args: list[Expr] = []
        for arg in node.args:
            data = None if _is_absent(arg) else self._values.get((tokens, arg))
            if data is None and not _is_absent(arg):
                return None
            args.append(arg if data is None else Constant(data))
        try:
            result = evaluate_call(with_fields(twin, args=tuple(args)))
        except IntarsiaError:
            return None
        return None if isinstance(result, tuple) else result


def _free(function: Function) -> frozenset[Expr]:
    free: set[Expr] = set()
    for node in post_order(function.body):
        match node:
            case Constant() | Op():
                free.add(node)
            case Tuple(fields=()):
                free.add(node)
            case Call(op=Op() as op) if facts_of(op).has(OperatorTrait.READS_SHAPE):
                free.add(node)
            case Call(op=Op()) if not is_random(node) and all(arg in free for arg in node.args):
                free.add(node)
    return frozenset(free)


def _only_number(value: Array | None) -> float | None:
    return None if value is None or value.size != 1 else float(value.item())


def _is_absent(arg: Expr) -> bool:
    return isinstance(arg, Tuple) and not arg.fields
