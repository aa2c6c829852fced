"""Replacing calls by the bodies of what they call, throughout a module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from intarsia.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    children,
    post_order,
    with_children,
    with_module_fields,
)
from intarsia.op.infer import typed
from intarsia.op.purity import impure_calls
from intarsia.passes.functions.call_graph import CallGraph
from intarsia.passes.functions.evaluation_region import operator_bodies
from intarsia.passes.functions.inlined_call import InlinableFunction
from intarsia.transform.function_pass import is_skipped


@dataclass(frozen=True, slots=True)
class Inlining:
    """Which calls are replaced.

    Attributes:
        of_global: Whether calls of a global function are, given its name and what it is.
        of_literal: Whether calls of a function literal are, given it and how often it is used.
    """

    of_global: Callable[[str, Function], bool]
    of_literal: Callable[[Function, int], bool]


def inline_calls(mod: IRModule, inlining: Inlining) -> IRModule:
    """The module with calls replaced, in callees first; the same object if there are none.

    Left alone are recursive functions, functions that passes skip (as callers and as callees), the inside of
    literals given to a toolchain, and calls in the body of a Loop, Scan or SequenceMap of what draws random
    numbers: without the call they would be drawn once, around the loop.

    Linear in the module that results, to which each call adds the size of what it calls.
    """
    graph = CallGraph.of(mod)
    recursive = graph.recursive()
    functions = dict(mod.functions)
    by_name = {var.name: var for var in functions}
    inlined: dict[str, InlinableFunction] = {}
    for name in graph.callees_first():
        function = functions[by_name[name]]
        if not isinstance(function, Function) or is_skipped(function):
            continue
        after = _Caller(function, mod, inlining, inlined).after()
        functions[by_name[name]] = after
        if name not in recursive and inlining.of_global(name, after):
            inlined[name] = InlinableFunction(after, is_copied=True)
    return with_module_fields(mod, functions=functions)


class _Caller:
    """One function in which calls are replaced.

    Args:
        function: The function.
        mod: Its module.
        inlining: Literals whose calls are replaced.
        inlined: The global functions whose calls are.
    """

    def __init__(
        self, function: Function, mod: IRModule, inlining: Inlining, inlined: dict[str, InlinableFunction]
    ) -> None:
        self._function = function
        self._inlining = inlining
        self._inlined = inlined
        compiled = {expr for expr in post_order(function) if isinstance(expr, Function) and is_skipped(expr)}
        self._order = tuple(post_order(function, stop=compiled))
        self._uses = Counter(child for expr in self._order for child in children(expr))
        self._mod = mod
        self._literals: dict[Expr, InlinableFunction] = {}
        self._done: dict[Expr, Expr] = {literal: literal for literal in compiled}

    def after(self) -> Function:
        """The function after it."""
        if not any(self._is_replaced(expr) for expr in self._order):
            return self._function
        kept = self._kept_calls()
        for expr in self._order:
            new = with_children(expr, tuple(self._done[child] for child in children(expr)))
            new = expr if new is expr else typed(new)
            if self._is_replaced(expr) and expr not in kept:
                assert isinstance(expr, Call)
                assert isinstance(new, Call)
                new = self._inlinable(expr).applied(new)
            self._done[expr] = new
        after = self._done[self._function]
        assert isinstance(after, Function)
        return after

    def _is_replaced(self, expr: Expr) -> bool:
        """Whether an expression is a call that is to be replaced."""
        match expr:
            case Call(op=GlobalVar(name=name)):
                return name in self._inlined
            case Call(op=Function() as literal):
                return not is_skipped(literal) and self._inlining.of_literal(literal, self._uses[literal])
            case _:
                return False

    def _inlinable(self, call: Call) -> InlinableFunction:
        if isinstance(call.op, GlobalVar):
            return self._inlined[call.op.name]
        if call.op not in self._literals:
            literal = self._done[call.op]
            assert isinstance(literal, Function)
            self._literals[call.op] = InlinableFunction(literal, is_copied=self._uses[call.op] > 1)
        return self._literals[call.op]

    def _kept_calls(self) -> frozenset[Expr]:
        """Calls of what draws random numbers in the bodies of operators."""
        bodies = operator_bodies(self._order)
        if not bodies:
            return frozenset()
        return frozenset(impure_calls(self._function, self._mod)).intersection(post_order(*bodies))
