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
    """What lies below the deepest result of @main, in evaluation order, as a graph of numbers.

    Function literals are parts of who calls them. Values that lead to other results only are left out.

    Attributes:
        mod: The program, with types.
        values: Parameters and compound expressions; the number of one is its place.
        number: The number of each.
        consumers: For each value, those that use it, in ascending order.
        parent: For each value, the first that all ways from it to the result pass; that of the result is -1.
        children: The tree of `parent` the other way round, in ascending order.
        size: For each value, how many it post-dominates, itself included.
        escaping: Numbers of the values that are used beside the graph, or are results.
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
        """The graph of a program; types that are missing are inferred. n log n in the program.

        None if @main is no plain dataflow: it has lets, branches or closures, or computes nothing.
        """
        mod = with_types(mod)
        body = mod["main"].body
        literals = {each for each in post_order(body) if isinstance(each, Function)}
        order = [each for each in post_order(body, stop=literals) if _is_value(each)]
        if any(map(free_vars, literals)) or not all(map(_is_plain, order)):
            return None
        results = body.fields if isinstance(body, Tuple) else (body,)
        deepest = _deepest(order, results)
        if deepest is None:
            return None
        values = tuple(each for each in post_order(deepest, stop=literals) if _is_value(each))
        number = {each: at for at, each in enumerate(values)}
        beside = (operand for each in order if each not in number for operand in operands(each))
        escaping = {number[each] for each in (*beside, *results) if each in number}
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
    is_typed = all(each.checked_type is not None or is_atom(each) for each in post_order(mod["main"].body))
    return mod if is_typed else infer_types(mod)


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions that are values: variables, and what is computed; no functions."""
    return tuple(each for each in all_children(expr) if _is_value(each))


def _is_value(expr: Expr) -> bool:
    return isinstance(expr, Var) or not (is_atom(expr) or isinstance(expr, Function))


def _is_plain(expr: Expr) -> bool:
    is_known = not isinstance(expr, Call) or isinstance(expr.op, (Op, GlobalVar, Function))
    return is_known and not isinstance(expr, (If, Let))


def _deepest(order: list[Expr], results: tuple[Expr, ...]) -> Expr | None:
    """The result behind the longest way, of equal ones the first; None if none is computed."""
    depth: dict[Expr, int] = {}
    for each in order:
        depth[each] = 1 + max((depth[operand] for operand in operands(each)), default=0)
    computed = [each for each in results if each in depth and not isinstance(each, Var)]
    return max(computed, key=depth.__getitem__, default=None)


def _consumers(values: tuple[Expr, ...], number: dict[Expr, int]) -> tuple[tuple[int, ...], ...]:
    found: list[dict[int, None]] = [{} for _ in values]
    for at, each in enumerate(values):
        for operand in operands(each):
            found[number[operand]][at] = None
    return tuple(map(tuple, found))


def _parents(consumers: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    tree = DominatorTree(len(consumers))
    for at in reversed(range(len(consumers))):
        uses = tuple((each, OpPatternKind.OPAQUE) for each in consumers[at])
        tree.add(at, uses, is_result=not uses)
    found = (tree.dominator(at) for at in range(len(consumers)))
    return tuple(-1 if each is None else each for each in found)
