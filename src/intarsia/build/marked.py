"""Functions that the program gives to a toolchain, taken out so that nothing looks into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from intarsia.build.kernel_table import is_marked
from intarsia.ir import Call, Expr, Function, GlobalVar, Op, children, substitute


@dataclass(frozen=True, slots=True)
class WithoutMarked:
    """A function in which each marked function literal has become a GlobalVar.

    Attributes:
        function: The function.
        literals: The marked functions by the name of their GlobalVar.
    """

    function: Function
    literals: dict[str, Function]


def without_marked(function: Function, fresh_name: Callable[[], str]) -> WithoutMarked:
    """Take out the outermost marked function literals; `fresh_name` gives names that the program lacks.

    Those in the body of a Loop or another operator with a body stay: the operator is compiled as a whole.
    """
    literals = tuple(_outermost(function))
    names = {literal: fresh_name() for literal in literals}
    replacements: dict[Expr, Expr] = {
        literal: GlobalVar(name, checked_type=literal.checked_type) for literal, name in names.items()
    }
    replaced = substitute(function, replacements) if literals else function
    assert isinstance(replaced, Function)
    return WithoutMarked(replaced, {name: literal for literal, name in names.items()})


def _outermost(root: Function) -> Iterator[Function]:
    seen: set[Expr] = {root}
    stack: list[Expr] = [root.body]
    while stack:
        expr = stack.pop()
        if expr in seen:
            continue
        seen.add(expr)
        if isinstance(expr, Function) and is_marked(expr):
            yield expr
            continue
        below = children(expr)
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            below = tuple(child for child in below if not isinstance(child, Function))
        stack.extend(reversed(below))
