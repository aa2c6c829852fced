"""The parameters and values of @main on the way to its deepest result, and their post-dominators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from intarsia.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    Tuple,
    Var,
    free_vars,
)
from intarsia.ir import children as all_children
from intarsia.ir.scope import is_atom
from intarsia.ir.traversal import post_order
from intarsia.op import OpPatternKind, infer_types
from intarsia.passes.fusion.dominator_tree import DominatorTree


@dataclass(frozen=True, slots=True, eq=False)
class ValueGraph:
    """The values that the deepest result of @main depends on, in evaluation order, as a graph of numbers.

    A function literal is part of the call that calls it. Values of other results only are left out.

    Attributes:
        mod: The program, with types.
        values: Parameters and compound expressions; the number of a value is its index.
        number: Number of each value.
        consumers: Numbers of the users of each value, ascending.
        parent: Immediate post-dominator of each value; -1 for the result.
        children: Children of each value in the post-dominator tree, ascending.
        size: Number of values that each value post-dominates, itself included.
        escaping: Numbers of the values that are used outside the graph, or are results.
    """

    mod: IRModule
    values: tuple[Expr, ...]
    number: dict[Expr, int]
    consumers: tuple[tuple[int, ...], ...]
    parent: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]
    size: tuple[int, ...]
    escaping: frozenset[int]

    @classmethod
    def of(cls, mod: IRModule) -> Self | None:
        """Build the graph of a program; types that are missing are inferred. n log n in the program.

        None if @main is not plain dataflow: it has lets, branches or closures, or computes nothing.
        """
        mod = with_types(mod)
        body = mod["main"].body
        literals = {expr for expr in post_order(body) if isinstance(expr, Function)}
        order = [expr for expr in post_order(body, stop=literals) if _is_value(expr)]
        if any(map(free_vars, literals)) or not all(map(_is_plain, order)):
            return None
        results = body.fields if isinstance(body, Tuple) else (body,)
        deepest = _deepest(order, results)
        if deepest is None:
            return None
        values = tuple(expr for expr in post_order(deepest, stop=literals) if _is_value(expr))
        number = {expr: at for at, expr in enumerate(values)}
        beside = (operand for expr in order if expr not in number for operand in operands(expr))
        escaping = {number[expr] for expr in (*beside, *results) if expr in number}
        consumers = _consumers(values, number)
        parent = _parents(consumers)
        size, children = [1] * len(values), [list[int]() for _ in values]
        for at, above in enumerate(parent):
            if above >= 0:
                size[above] += size[at]
                children[above].append(at)
        below = tuple(map(tuple, children))
        return cls(mod, values, number, consumers, parent, below, tuple(size), frozenset(escaping))


def with_types(mod: IRModule) -> IRModule:
    """The program with types; the same object if it has them."""
    is_typed = all(expr.checked_type is not None or is_atom(expr) for expr in post_order(mod["main"].body))
    return mod if is_typed else infer_types(mod)


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions that are values: variables, and what is computed; no functions."""
    return tuple(child for child in all_children(expr) if _is_value(child))


def _is_value(expr: Expr) -> bool:
    return isinstance(expr, Var) or not (is_atom(expr) or isinstance(expr, Function))


def _is_plain(expr: Expr) -> bool:
    is_known = not isinstance(expr, Call) or isinstance(expr.op, (Op, GlobalVar, Function))
    return is_known and not isinstance(expr, (If, Let))


def _deepest(order: list[Expr], results: tuple[Expr, ...]) -> Expr | None:
    """Return the result with the longest path to it, of equal ones the first; None if none is computed."""
    depth: dict[Expr, int] = {}
    for expr in order:
        depth[expr] = 1 + max((depth[operand] for operand in operands(expr)), default=0)
    computed = [expr for expr in results if expr in depth and not isinstance(expr, Var)]
    return max(computed, key=depth.__getitem__, default=None)


def _consumers(values: tuple[Expr, ...], number: dict[Expr, int]) -> tuple[tuple[int, ...], ...]:
    users: list[dict[int, None]] = [{} for _ in values]
    for at, value in enumerate(values):
        for operand in operands(value):
            users[number[operand]][at] = None
    return tuple(map(tuple, users))


def _parents(consumers: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    tree = DominatorTree(len(consumers))
    for at in reversed(range(len(consumers))):
        uses = tuple((user, OpPatternKind.OPAQUE) for user in consumers[at])
        tree.add(at, uses, is_result=not uses)
    dominators = (tree.dominator(at) for at in range(len(consumers)))
    return tuple(-1 if dominator is None else dominator for dominator in dominators)
