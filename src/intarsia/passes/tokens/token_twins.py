"""A program bound to several numbers of tokens and texts, and the values that it computes from them alone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from intarsia.ir import Call, Constant, Expr, Function, Op, SymbolicDim, Tuple, post_order, with_fields
from intarsia.op.evaluate import evaluate_call
from intarsia.op.known_value import known_value
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import facts_of
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.purity import is_random
from intarsia.op.token_pool_op import POOL_OF_TOKENS
from intarsia.passes.bind_dims import bind_function
from intarsia.passes.rules.tensor_facts import static_shape_of
from intarsia.support.errors import IntarsiaError

Array = npt.NDArray[Any]
Fact = TypeVar("Fact")
LENGTHS: Final = (29, 37, 5)
"""Numbers of tokens at which programs are compared. Primes, so that no other extent is a multiple of them by
chance, and small, since tables of positions may be short."""
PASTS: Final = MappingProxyType({29: 6, 37: 20, 5: 47})
"""Number of tokens of the past at each of these numbers, so that all tokens are another number as well."""
TEXTS: Final = 3
"""Number of texts at which programs are compared with one text."""


@dataclass(frozen=True, slots=True)
class Past:
    """The keys and values of earlier tokens that a program is given.

    Attributes:
        symbol: Name of the dimension that counts past tokens.
        total: Name of the dimension that counts past tokens and new ones; None if no parameter has it.
        states: Names of the parameters with keys and values.
        joined: The Concats of the past and what is new.
    """

    symbol: str
    total: str | None
    states: tuple[str, ...]
    joined: Collection[Expr] = ()


class TokenTwins:
    """The expressions of a program, each bound to some numbers of tokens and of texts.

    An expression is *free* if it reads no element of a parameter: constants, and what shapes determine.

    Args:
        function: Typed program whose parameters have no symbolic dimensions but numbers of texts and tokens.
        symbol: Name of the dimension that counts tokens.
        most: Maximum number of tokens.
        texts: Name of the dimension that counts texts; None if there is one text.
        past: The past of the program; None if it has none.
        source: Name of the dimension that counts tokens of other texts, those of an encoder, to which tokens
            attend; None if there are none. Such programs have no past.

    Attributes:
        function: The program.
        most: Maximum number of tokens.
        texts: Name of the dimension that counts texts; None if there is one text.
        past: The past of the program; None if it has none.
        source: Name of the dimension that counts tokens of other texts; None if there are none.
        free: Its free expressions.
    """

    def __init__(
        self,
        function: Function,
        symbol: str,
        most: int,
        texts: str | None = None,
        past: Past | None = None,
        source: str | None = None,
    ) -> None:
        self.function = function
        self.most = most
        self.texts = texts
        self.past = past
        self.source = source
        self._has_source_keys = source is not None
        self.free = _free(function)
        self._dim = SymbolicDim(symbol)
        self._bound: dict[tuple[int, int, int], dict[Expr, Expr]] = {}
        self._values: dict[tuple[tuple[int, int, int], Expr], Array | None] = {}

    def past_of(self, tokens: int) -> int:
        """Return the number of past tokens beside a number of tokens; 0 for a program without a past."""
        return 0 if self.past is None else PASTS.get(tokens, PASTS[LENGTHS[0]])

    def keys_of(self, tokens: int) -> int:
        """Return the number of tokens that a token can attend to: past ones and new ones, or other texts'."""
        return self._others_of(tokens) if self._has_source_keys else tokens + self.past_of(tokens)

    def among_tokens(self) -> TokenTwins:
        """Return the same twins, in which tokens attend to each other and not to those of other texts."""
        twins = copy(self)
        twins._has_source_keys = False
        return twins

    def _others_of(self, tokens: int) -> int:
        """Return the number of past tokens, or of those of other texts, beside a number of tokens."""
        return PASTS.get(tokens, PASTS[LENGTHS[0]]) if self.past or self.source else 0

    def bound(self, tokens: int, texts: int = 1, past: int | None = None) -> dict[Expr, Expr]:
        """Return the expressions for numbers of tokens of each text, of texts, and of past tokens.

        Raises:
            InvalidModelError: The program takes no such numbers.
        """
        key = self._key(tokens, texts, past)
        if key not in self._bound:
            sizes = {self._dim: tokens} | ({} if self.texts is None else {SymbolicDim(self.texts): texts})
            if self.past is not None:
                sizes[SymbolicDim(self.past.symbol)] = key[2]
                if self.past.total is not None:
                    sizes[SymbolicDim(self.past.total)] = tokens + key[2]
            if self.source is not None:
                sizes[SymbolicDim(self.source)] = key[2]
            after = bind_function(self.function, sizes)
            self._bound[key] = dict(zip(post_order(self.function), post_order(after), strict=True))
        return self._bound[key]

    def shape(self, node: Expr, tokens: int, texts: int = 1) -> tuple[int, ...] | None:
        """Return the shape of a tensor for a number of tokens and texts; None if it is not known.

        Raises:
            InvalidModelError: The program takes no such numbers.
        """
        return static_shape_of(self.bound(tokens, texts)[node])

    def texts_axes(self, node: Expr) -> tuple[int, ...] | None:
        """Return the axes of a tensor that have the number of texts; None if its rank is not always the same.

        Raises:
            InvalidModelError: The program takes no such numbers.
        """
        if self.texts is None:
            return ()
        shapes = [self.shape(node, LENGTHS[0], texts) for texts in (1, TEXTS)]
        if len({None if shape is None else len(shape) for shape in shapes}) > 1 or shapes[0] is None:
            return None
        extents = zip(*(shape for shape in shapes if shape is not None), strict=True)
        return tuple(axis for axis, pair in enumerate(extents) if pair[0] != pair[1])

    def token_axis(self, node: Expr) -> int | None:
        """Return the only axis of a tensor of one text that has the number of tokens; None if there is none.

        Raises:
            InvalidModelError: The program takes no such numbers.
        """
        shapes = [self.shape(node, tokens) for tokens in LENGTHS]
        ranks = {None if shape is None else len(shape) for shape in shapes}
        if None in ranks or len(ranks) != 1:
            return None
        extents = list(zip(*(shape for shape in shapes if shape is not None), strict=True))
        sized = [axis for axis, item in enumerate(extents) if len(set(item)) > 1]
        return sized[0] if len(sized) == 1 and extents[sized[0]] == LENGTHS else None

    def key_axis(self, node: Expr) -> int | None:
        """Return the only axis of a tensor of one text that has the number of keys; None if there is none.

        Raises:
            InvalidModelError: The program takes no such numbers.
        """
        shapes = [self.shape(node, tokens) for tokens in LENGTHS]
        ranks = {None if shape is None else len(shape) for shape in shapes}
        if (self.past is None and not self._has_source_keys) or None in ranks or len(ranks) != 1:
            return None
        extents = list(zip(*(shape for shape in shapes if shape is not None), strict=True))
        sized = [axis for axis, item in enumerate(extents) if len(set(item)) > 1]
        counts = tuple(map(self.keys_of, LENGTHS))
        return sized[0] if len(sized) == 1 and extents[sized[0]] == counts else None

    def counts(self, node: Expr, axis: int, *, of_keys: bool = False) -> bool:
        """Return whether a free value counts tokens, or keys, from 0 along an axis, and others are 1.

        Args:
            node: Expression.
            axis: The axis, counted from the end.
            of_keys: Whether it counts keys.

        Raises:
            InvalidModelError: The program takes no such numbers.
        """
        if node not in self.free or not self.is_same_for_all_texts(node):
            return False
        for tokens in LENGTHS:
            value, count = self.value(node, tokens), self.keys_of(tokens) if of_keys else tokens
            if value is None or value.ndim < -axis or value.shape[axis] != value.size:
                return False
            if not np.array_equal(value.reshape(-1), np.arange(count)):
                return False
        return True

    def value(self, node: Expr, tokens: int, texts: int = 1, past: int | None = None) -> Array | None:
        """Return the value of a free expression; None if it has none, such as a tuple.

        Raises:
            InvalidModelError: The program takes no such numbers.
        """
        key = self._key(tokens, texts, past)
        for inner in post_order(node):
            if (key, inner) not in self._values and inner in self.free:
                self._values[key, inner] = self._evaluated(inner, key)
        return self._values.get((key, node))

    def full_value(self, node: Expr) -> Array | None:
        """Return the value of a free expression for the most tokens, without a past.

        Raises:
            InvalidModelError: The program takes no such number.
        """
        return self.value(node, self.most, past=None if self.source else 0)

    def is_same_for_all_texts(self, node: Expr) -> bool:
        """Return whether a free value of several texts is that of one text, for each of them.

        Raises:
            InvalidModelError: The program takes no such numbers.
        """
        if self.texts is None:
            return True
        single, several = (self.value(node, LENGTHS[0], texts) for texts in (1, TEXTS))
        if single is None or several is None or single.ndim != several.ndim:
            return False
        sized = [pair for pair in zip(single.shape, several.shape, strict=True) if pair[0] != pair[1]]
        if sized not in ([], [(1, TEXTS)]):
            return False
        return np.array_equal(np.broadcast_to(single, several.shape), several)

    def common(self, node: Expr, fact: Callable[[Array | None], Fact | None]) -> Fact | None:
        """Return what holds for the values of a free expression for all compared numbers of tokens, or None.

        They have to be the same for all texts.

        What small numbers have in common is compared for the most tokens as well. These values are forgotten:
        they are large where there is one for each pair of tokens.

        Args:
            node: Free expression.
            fact: Function from a value to the fact; None where there is none.

        Raises:
            InvalidModelError: The program takes no such number.
        """
        first = fact(self.value(node, LENGTHS[0])) if self.is_same_for_all_texts(node) else None
        if first is None or any(fact(self.value(node, tokens)) != first for tokens in LENGTHS[1:]):
            return None
        past = 0 if self.past is None else self.most // 2
        is_common = fact(self.value(node, self.most - past, past=None if self.source else past)) == first
        for key in [key for key in self._values if key[0][0] == self.most - past]:
            del self._values[key]
        return first if is_common else None

    def number(self, node: Expr) -> float | None:
        """Return the only element of a free expression, the same for all numbers of tokens; None for others.

        Raises:
            InvalidModelError: The program takes no such number.
        """
        return self.common(node, _only_number) if node in self.free else None

    def _key(self, tokens: int, texts: int, past: int | None) -> tuple[int, int, int]:
        return tokens, texts, self._others_of(tokens) if past is None else past

    def _evaluated(self, node: Expr, key: tuple[int, int, int]) -> Array | None:
        twin = self.bound(*key)[node]
        value = known_value(twin)
        if value is not None or isinstance(twin, Constant):
            return twin.data if isinstance(twin, Constant) else value
        if not isinstance(twin, Call) or not isinstance(node, Call):
            return None
        args: list[Expr] = []
        for arg in node.args:
            data = None if _is_absent(arg) else self._values.get((key, arg))
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
            case Call(op=Op(name=name, domain=domain)) if (domain, name) == (INTARSIA_DOMAIN, POOL_OF_TOKENS):
                continue  # what it pools may be a table
            case Call(op=Op()) if not is_random(node) and all(arg in free for arg in node.args):
                free.add(node)
    return frozenset(free)


def _only_number(value: Array | None) -> float | None:
    return None if value is None or value.size != 1 else float(value.item())


def _is_absent(arg: Expr) -> bool:
    return isinstance(arg, Tuple) and not arg.fields
