"""Decisions on a repeated part, applied to each of its occurrences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from intarsia.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    PrimFunc,
    Tuple,
    TupleGetItem,
    children,
    rewrite,
    with_fields,
)
from intarsia.op.infer import typed
from intarsia.op.rewrite_typed import over_rewritten
from intarsia.passes.functions.inlined_call import InlinableFunction
from intarsia.passes.regions.outline import Outline
from intarsia.support.errors import UsageError
from intarsia.support.free_names import free_name
from intarsia.support.post_order import post_order_of
from intarsia.tune.choice import Choice
from intarsia.tune.repeated.repeated_parts import LEAST_OPERATORS, RepeatedPart, repeated_parts
from intarsia.tune.repeated.value_graph import with_types
from intarsia.tune.transformations import transformation


@transformation
def in_repeated_parts(
    mod: IRModule, parts: Mapping[str, Sequence[Mapping[str, Any]]], least_operators: int = LEAST_OPERATORS
) -> IRModule:
    """Apply choices to every occurrence of the repeated parts of a program.

    A choice may fail on an occurrence because it depends on the values of weights. That occurrence then stays
    unchanged. The choices must apply to the first occurrence, which they were made for.

    Args:
        mod: The program.
        parts: Choices by the digest of the part, in the form of `Choice.to_json`.
        least_operators: Argument of `repeated_parts`.

    Raises:
        UsageError: There is no such part, or a choice cannot be applied to its first occurrence.
    """
    mod = with_types(mod)
    by_digest = {part.digest: part for part in repeated_parts(mod, least_operators)}
    unknown = next((digest for digest in parts if digest not in by_digest), None)
    if unknown is not None:
        raise UsageError(
            f"the program has no repeated part {unknown[:12]}",
            help=f"it has: {', '.join(digest[:12] for digest in by_digest) or 'none'}",
        )
    host = _Host(mod)
    for digest, data in parts.items():
        choices = [Choice.from_json(choice) for choice in data]
        for outline, decided in _apply_choices(by_digest[digest], choices):
            host.replace(outline, decided)
    return host.build()


def _apply_choices(part: RepeatedPart, choices: Sequence[Choice]) -> list[tuple[Outline, IRModule]]:
    """Apply choices to the occurrences of a part; those where a choice fails are left out."""
    results = []
    for number, outline in enumerate(part.occurrences):
        after = IRModule.from_expr(outline.function)
        try:
            for choice in choices:
                after = choice.apply(after)
        except UsageError:
            if number == 0:
                raise
            continue
        results.append((outline, after))
    return results


class _Host:
    """A builder of a program with some parts replaced."""

    def __init__(self, mod: IRModule) -> None:
        self._mod = mod
        self._functions: dict[GlobalVar, Function | PrimFunc] = dict(mod.functions)
        self._names = {var.name for var in mod.functions}
        self._outlines: dict[Expr, Outline] = {}
        self._bodies: dict[Outline, Function] = {}
        self._attrs = mod.attrs

    def replace(self, outline: Outline, decided: IRModule) -> None:
        """Replace a part by the @main of a program; the other functions get unused names.

        The program's attributes, such as its error bound, become attributes of the whole.
        """
        self._attrs = self._attrs.updated(**decided.attrs)
        renamed = {var: self._unused_var(var) for var in decided.functions if var.name != "main"}
        targets = {var.name: new for var, new in renamed.items()}

        def named(expr: Expr) -> Expr:
            return targets.get(expr.name, expr) if isinstance(expr, GlobalVar) else expr

        self._functions.update((renamed[var], one) for var, one in decided.prim_funcs.items())
        for var, function in decided.graph_functions.items():
            after = rewrite(function, named)
            assert isinstance(after, Function)
            if var.name == "main":
                self._bodies[outline] = after
            else:
                self._functions[renamed[var]] = _with_symbol(after, var.name, renamed[var].name)
        self._outlines.update((output, outline) for output in outline.outputs)

    def build(self) -> IRModule:
        """Build the program. Linear in the program and the replacements."""
        main = self._mod["main"]
        done: dict[Expr, Expr] = {}
        for expr in post_order_of((main,), self._below, stop=done):
            outline = self._outlines.get(expr)
            if outline is None:
                done[expr] = over_rewritten(expr, done)
            else:  # all outputs of the part at once
                done.update(self._inline(outline, tuple(done[each] for each in outline.arguments)))
        after = done[main]
        assert isinstance(after, Function)
        functions = {var: after if var.name == "main" else one for var, one in self._functions.items()}
        return IRModule(functions, self._attrs)

    def _below(self, expr: Expr) -> tuple[Expr, ...]:
        outline = self._outlines.get(expr)
        return children(expr) if outline is None else outline.arguments

    def _inline(self, outline: Outline, arguments: tuple[Expr, ...]) -> Mapping[Expr, Expr]:
        """Return the value of each output of a part after its replacement."""
        body, last = self._bodies[outline], outline.outputs[-1]
        call = Call(body, arguments, span=last.span, virtual_device=last.virtual_device)
        value = InlinableFunction(body, is_copied=False).applied(call)
        if len(outline.outputs) == 1:
            return {last: value}
        if isinstance(value, Tuple):
            return dict(zip(outline.outputs, value.fields, strict=True))
        return {output: typed(TupleGetItem(value, at)) for at, output in enumerate(outline.outputs)}

    def _unused_var(self, var: GlobalVar) -> GlobalVar:
        """Return a global variable with an unused name, and reserve the name."""
        name = free_name(var.name, self._names, first=2)
        self._names.add(name)
        return with_fields(var, name=name)


def _with_symbol(function: Function, old: str, new: str) -> Function:
    """Rename the function's `global_symbol` if it equals the old name."""
    if function.attrs.get("global_symbol") != old:
        return function
    return with_fields(function, attrs=function.attrs.updated(global_symbol=new))
