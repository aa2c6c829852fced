"""The text form of programs: complete (`parse_module` reads it back), linear, without recursion.

Every compound expression is bound once, to a numbered temporary of the scope it is evaluated in; names and
constants stand where they are used. What an expression is annotated with follows it: `: type`,
`@device(...)`, `@span(node, source, operator)`; for `fn`, `def` and `let` it stands in their head.
Loop functions have a text form of their own, in `loop_printer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from intarsia.ir.attributes import Attrs
from intarsia.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from intarsia.ir.listing import TEXT_VERSION, Listing, ProgramText
from intarsia.ir.literal import name_of, name_text, op_text
from intarsia.ir.loop_printer import list_prim_func
from intarsia.ir.prim_func import PrimFunc
from intarsia.ir.scope import Scope, ScopedProgram, place
from intarsia.ir.traversal import free_vars
from intarsia.ir.types import ABSENT, FuncType, TensorType
from intarsia.support.free_names import NameSupply

_DEEPEST_INDENT: Final = 20  # deeper nesting is indented no further, else the text of nested Ifs is quadratic

Blocks: TypeAlias = "Iterator[Blocks]"
"""Writes a region line by line, and yields the writers of the regions inside it instead of calling them."""


class Program(Protocol):
    """What is printed of a module; `IRModule` itself prints through this file."""

    @property
    def functions(self) -> Mapping[GlobalVar, Function | PrimFunc]:
        """Each function under the GlobalVar that calls of it refer to, in order of definition."""

    @property
    def attrs(self) -> Attrs:
        """Facts on the whole program."""


def print_module(
    mod: Program,
    *,
    show_types: bool = True,
    show_devices: bool = True,
    show_spans: bool = True,
    number_constants: bool = True,
) -> ProgramText:
    """A program as text.

    Args:
        mod: The program.
        show_types: Whether types are written; the text parses without.
        show_devices: Whether virtual devices are written.
        show_spans: Whether spans are written.
        number_constants: Whether constants are written as numbers; else as the start of the digest of type
            and values, for comparisons of texts: such text does not parse.

    Raises:
        TypeError: An attribute holds a value of none of the kinds that attributes have.
    """
    listing = Listing(show_types, show_devices, show_spans, number_constants)
    list_module(mod, listing)
    return listing.finish()


def print_expr(
    expr: Expr, *, show_types: bool = True, show_devices: bool = True, show_spans: bool = True
) -> ProgramText:
    """An expression as text: statements, then the result; free variables are declared at the top.

    Raises:
        TypeError: As print_module.
    """
    listing = Listing(show_types, show_devices, show_spans)
    _Region(listing, "", place(expr)).write_expression(expr)
    return listing.finish()


def list_module(mod: Program, listing: Listing) -> None:
    """Write a program into a listing, which records the line of each expression."""
    listing.lines.append(f'#[version = "{TEXT_VERSION}"]')
    if mod.attrs:
        listing.lines.append(f"#[attrs({listing.attrs_text(mod.attrs)})]")
    for number, (var, function) in enumerate(mod.functions.items()):
        if number:
            listing.lines.append("")
        if isinstance(function, PrimFunc):
            list_prim_func(var.name, function, listing)
        else:
            _Region(listing, var.name, place(function)).write_definition(var, function)


@dataclass(slots=True)
class _Region:
    """Writes one global function, or one expression."""

    listing: Listing
    owner: str
    placed: ScopedProgram
    variables: NameSupply = field(default_factory=NameSupply)  # names of the variables in scope
    temporaries: int = 0

    def write_definition(self, var: GlobalVar, function: Function) -> None:
        start = f"def @{name_text(var.name)}"
        self._note(function, start.removeprefix("def "))
        free = free_vars(function)
        self._declare(*free)
        _run(self._function(function, start, "", 0, free))

    def write_expression(self, root: Expr) -> None:
        free = free_vars(root)
        self._declare(*free)
        for var in free:
            self._emit(0, f"free_var {self._binder(var)};")
        if isinstance(root, Function):
            self._note(root, "fn")
            _run(self._function(root, "fn ", "", 0))
        else:
            _run(self._scope(self.placed.outermost, 0))

    def _scope(self, scope: Scope, depth: int) -> Blocks:
        declared: list[Var] = []
        members = self.placed.members[scope]
        while members and isinstance(let := members[-1], Let) and let is scope.root:
            for expr in members[:-1]:
                yield from self._statement(expr, depth)
            self._note(let, "let")
            self._emit(depth, f"{self._let_head(let)};")
            declared.append(let.var)
            scope = self.placed.inner[let, 2]
            members = self.placed.members[scope]
        for expr in members:
            yield from self._statement(expr, depth)
        self._emit(depth, self._value(scope.root))
        self._forget(*declared)

    def _statement(self, expr: Expr, depth: int) -> Blocks:
        name = f"%{self.temporaries}"
        self.temporaries += 1
        self._note(expr, name)
        match expr:
            case Function():
                yield from self._function(expr, f"{name} = fn ", ";", depth)
            case If():
                self._emit(depth, f"{name} = if ({self._value(expr.cond)}) {{")
                yield self._scope(self.placed.inner[expr, 1], depth + 1)
                self._emit(depth, "} else {")
                yield self._scope(self.placed.inner[expr, 2], depth + 1)
                self._emit(depth, f"}}{self.listing.facts_text(expr, expr.checked_type)};")
            case Let():
                self._emit(depth, f"{name} = {self._let_head(expr)} {{")
                yield self._scope(self.placed.inner[expr, 2], depth + 1)
                self._forget(expr.var)
                self._emit(depth, "};")
            case _:
                self._emit(
                    depth, f"{name} = {self._simple(expr)}{self.listing.facts_text(expr, expr.checked_type)};"
                )

    def _function(
        self, function: Function, start: str, end: str, depth: int, free: tuple[Var, ...] = ()
    ) -> Blocks:
        self._declare(*function.params)
        params = ", ".join(map(self._binder, function.params))
        self._emit(depth, f"{start}({params}){self._function_facts(function)} {{")
        for var in free:
            self._emit(depth + 1, f"free_var {self._binder(var)};")
        yield self._scope(self.placed.inner[function, len(function.params)], depth + 1)
        self._forget(*function.params)
        self._emit(depth, "}" + end)

    def _function_facts(self, function: Function) -> str:
        type_ = function.checked_type
        params = tuple(param.checked_type for param in function.params)
        result, odd_type = "", None
        if not isinstance(type_, FuncType) or type_.params != params:
            odd_type = type_
        elif self.listing.show_types and (type_.result is not None or function.body.checked_type is not None):
            result = f" -> {'_' if type_.result is None else type_.result}"
        attrs = f" attributes {{{self.listing.attrs_text(function.attrs)}}}" if function.attrs else ""
        return f"{result}{attrs}{self.listing.facts_text(function, odd_type)}"

    def _let_head(self, let: Let) -> str:
        value = self._value(let.value)
        self._declare(let.var)
        odd_type = None if let.checked_type == let.body.checked_type else let.checked_type
        return f"let{self.listing.facts_text(let, odd_type)} {self._binder(let.var)} = {value}"

    def _binder(self, var: Var) -> str:
        self.listing.line_of.setdefault((self.owner, var), len(self.listing.lines))
        return self._value(var) + self.listing.facts_text(var, var.checked_type)

    def _simple(self, expr: Expr) -> str:
        match expr:
            case Call():
                parts = [self._value(arg) for arg in expr.args]
                if expr.attrs:
                    parts.append(self.listing.attrs_text(expr.attrs))
                return f"{self._value(expr.op, grouped=True)}({', '.join(parts)})"
            case TupleGetItem():
                return f"{self._value(expr.tuple_value, grouped=True)}.{expr.index}"
            case Tuple():
                items = ", ".join(map(self._value, expr.fields))
                return f"({items},)" if len(expr.fields) == 1 else f"({items})"
            case _:
                raise AssertionError(f"{type(expr).__name__} is written elsewhere")

    def _value(self, expr: Expr, grouped: bool = False) -> str:
        name = self.listing.name_of.get((self.owner, expr))
        if name is not None:
            return name
        bare, facts = self._atom(expr)
        return f"({bare}{facts})" if facts and grouped else bare + facts

    def _atom(self, expr: Expr) -> tuple[str, str]:
        type_ = expr.checked_type
        match expr:
            case Op():
                return op_text(expr), self.listing.facts_text(expr, type_)
            case GlobalVar():
                return f"@{name_text(expr.name)}", self.listing.facts_text(expr, None)
            case Constant():
                odd_type = None if type_ == TensorType.of(expr.data) else type_
                return self.listing.constant_text(expr), self.listing.facts_text(expr, odd_type)
            case Tuple():
                return "()", self.listing.facts_text(expr, None if type_ == ABSENT else type_)
            case Var():  # used where no binder is: verify complains, the printer does not
                return f"%{name_text(expr.name)}", ""
            case _:
                raise AssertionError(f"{type(expr).__name__} is used before it is written")

    def _declare(self, *variables: Var) -> None:
        for var in variables:
            if (self.owner, var) in self.listing.name_of:
                continue  # bound a second time, which verify complains about
            name = self.variables.fresh(var.name)
            self.listing.name_of[self.owner, var] = f"%{name_text(name)}"

    def _forget(self, *variables: Var) -> None:
        for var in variables:
            self.variables.release(name_of(self.listing.name_of[self.owner, var].removeprefix("%")))

    def _note(self, expr: Expr, name: str) -> None:
        self.listing.line_of[self.owner, expr] = len(self.listing.lines)
        self.listing.name_of[self.owner, expr] = name

    def _emit(self, depth: int, line: str) -> None:
        self.listing.lines.append("  " * min(depth, _DEEPEST_INDENT) + line)


def _run(blocks: Blocks) -> None:
    """Write a region and those inside it, in order, with a stack of our own."""
    stack = [blocks]
    while stack:
        inside = next(stack[-1], None)
        if inside is None:
            stack.pop()
        else:
            stack.append(inside)
