"""Rows of several texts that lie token by token are put text by text, as all values of texts lie.

    Before: Reshape(Gemm(Reshape(x, [length * texts, 8]), w), [length, texts, 8])     x (length, texts, 8)
    After:  Transpose(Reshape(Gemm(Reshape(Transpose(x), [texts * length, 8]), w), [texts, length, 8]))

So PyTorch's MultiheadAttention writes its last layer. Where each row is computed by itself, their order does
not matter in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, Expr, Function, Op, children, post_order
from intarsia.op import call
from intarsia.op.operator_facts import LayoutKind
from intarsia.op.operator_table import facts_of
from intarsia.passes.rules.rewrite_original import rewrite_original
from intarsia.passes.rules.tensor_facts import int_attr, operator_name, with_args
from intarsia.passes.tokens.token_twins import LENGTHS, TEXTS, TokenTwins

_TOKENS: Final = LENGTHS[0]
_PRODUCTS: Final = frozenset({"Gemm", "MatMul"})


def with_rows_by_text(twins: TokenTwins) -> Function:
    """Return a program with such rows text by text; the same one if they are read in another way."""
    if twins.texts is None:
        return twins.function
    rows = {node: _shape(node, twins)[0] for node in post_order(twins.function.body) if _merges(node, twins)}
    if not rows:
        return twins.function
    ends: set[Expr] = set()
    for node in post_order(twins.function):
        if node in rows or not any(child in rows for child in children(node)):
            continue
        if _divides(node, twins):
            ends.add(node)
        elif isinstance(node, Call) and _keeps_rows(node, rows, twins):
            rows[node] = _shape(node, twins)[0]
        else:
            return twins.function

    def rule(node: Expr, current: Expr) -> Expr:
        if node in ends and isinstance(node, Call) and isinstance(current, Call):
            shape = _shape_by_text(node, current, twins)
            return _turned(call("Reshape", current.args[0], shape), node, twins)
        if node in rows and isinstance(node, Call) and isinstance(current, Call) and _merges(node, twins):
            return with_args(current, _turned(current.args[0], node.args[0], twins), current.args[1])
        return current

    return rewrite_original(twins.function, rule)


def _shape(node: Expr, twins: TokenTwins) -> tuple[int, ...]:
    return twins.shape(node, _TOKENS, TEXTS) or ()


def _shape_by_text(node: Call, current: Call, twins: TokenTwins) -> Expr:
    """Return the shape of what a Reshape makes, with its first two axes exchanged."""
    count, _, *rest = _shape(node, twins)
    if twins.token_axis(node) is None:
        return Constant(np.array([-1, count, *rest], np.int64))
    return call("Gather", current.args[1], Constant(np.array([1, 0, *range(2, len(rest) + 2)], np.int64)))


def _turned(current: Expr, like: Expr, twins: TokenTwins) -> Call:
    """Return a value with its first two axes exchanged."""
    return call("Transpose", current, perm=(1, 0, *range(2, len(_shape(like, twins)))))


def _is_by_token(node: Expr, twins: TokenTwins) -> bool:
    """Return whether a value is (tokens, texts, ...), or has another number of rows in place of tokens."""
    if twins.texts_axes(node) != (1,) or _shape(node, twins)[0] < 2:
        return False
    return twins.token_axis(node) == 0 or twins.shape(node, LENGTHS[1], TEXTS) == _shape(node, twins)


def _merges(node: Expr, twins: TokenTwins) -> bool:
    """Return whether an expression makes rows of (tokens, texts, ...)."""
    if (
        not isinstance(node, Call)
        or operator_name(node) != "Reshape"
        or not _is_by_token(node.args[0], twins)
    ):
        return False
    before, after = _shape(node.args[0], twins), _shape(node, twins)
    return after[:1] == (before[0] * TEXTS,) and prod(after[1:]) == prod(before[2:])


def _divides(node: Expr, twins: TokenTwins) -> bool:
    """Return whether an expression makes (tokens, texts, ...) of rows again."""
    if not isinstance(node, Call) or operator_name(node) != "Reshape" or not _is_by_token(node, twins):
        return False
    before, after = _shape(node.args[0], twins), _shape(node, twins)
    return before[:1] == (after[0] * TEXTS,) and prod(before[1:]) == prod(after[2:])


def _keeps_rows(node: Call, rows: Mapping[Expr, int], twins: TokenTwins) -> bool:
    """Return whether an operator computes each row by itself, given which of its arguments are rows."""
    shape, name = _shape(node, twins), operator_name(node)
    counts = {rows[arg] for arg in node.args if arg in rows}
    if {*shape[:1]} != counts or not isinstance(node.op, Op):
        return False
    others = [arg for arg in node.args if arg not in rows]
    if name in _PRODUCTS:
        is_plain = node.args[0] in rows and not int_attr(node.attrs, "transA", 0)
        return is_plain and not any(arg in rows for arg in node.args[1:])
    is_alone = all(_shape(arg, twins)[-len(shape) :][:1] != shape[:1] for arg in others)
    return facts_of(node.op).layout is LayoutKind.ELEMENTWISE and is_alone
