"""What the grammar's rules for expressions and programs build.

lark calls the method named after a rule as soon as it has read the last of the rule's text, so names are
resolved and scopes open and close in the order of the text, and no parse tree is kept.

An expression with annotations that may still follow is a draft: calling it with the facts builds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt

from intarsia.ir.attributes import NO_ATTRS, Attrs
from intarsia.ir.expr import (
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
    with_fields,
)
from intarsia.ir.listing import TEXT_VERSION
from intarsia.ir.loop_builder import LoopBuilder
from intarsia.ir.module import IRModule
from intarsia.ir.prim_func import PrimFunc
from intarsia.ir.text_error import did_you_mean
from intarsia.ir.types import FuncType
from intarsia.ir.value_builder import Children, Facts, ValueBuilder, known

if TYPE_CHECKING:
    from lark import Token

Draft: TypeAlias = partial[Any]
Key: TypeAlias = str | int
"""A name as it is looked up: temporaries are numbers, so that `%0` is not `%"0"`."""


@dataclass(slots=True)
class _Let:
    """A let before the end of its body."""

    var: Var
    value: Expr
    facts: Facts


@dataclass(slots=True)
class _Scope:
    """The names that end with a scope, and its lets, outermost first."""

    names: list[Key] = field(default_factory=list)
    lets: list[_Let] = field(default_factory=list)


class ProgramBuilder(LoopBuilder):
    """Builds expressions and the program."""

    def begin(self, source: str, constants: tuple[npt.NDArray[Any], ...]) -> None:
        """Forget everything, and be ready for a text."""
        super().begin(source, constants)
        self.names: dict[Key, tuple[Expr, int]] = {}
        self.scopes = [_Scope()]
        self.functions: dict[GlobalVar, Function | PrimFunc] = {}
        self.globals: dict[str, tuple[GlobalVar, Token]] = {}
        self.defined: dict[str, int] = {}
        self.ops: dict[tuple[str, str], Op] = {}
        self.atoms: dict[tuple[object, ...], Expr] = {}

    # The program

    def module(self, children: Children) -> IRModule:
        """The whole text."""
        attrs = children[1]
        for name, (_, token) in self.globals.items():
            if name not in self.defined:
                self.fail(token, f"{token} is not defined", did_you_mean("@", name, self.defined))
        for var, function in self.functions.items():
            if isinstance(function, Function):
                object.__setattr__(var, "checked_type", function.checked_type)  # not known at its first use
        return IRModule(self.functions, attrs or NO_ATTRS)

    def version(self, children: Children) -> None:
        """`#[version = "0.1"]`."""
        _, token = children
        if self.string_value([token]) != TEXT_VERSION:
            self.fail(token, f'the text is of version {token}; expected "{TEXT_VERSION}"')

    def def_open(self, children: Children) -> Token:
        """`def @name(`."""
        token: Token = children[0]
        self.define_global(token)
        self.scopes.append(_Scope())
        return token

    def define_global(self, token: Token) -> None:
        """Refuse a second global function of one name."""
        name = self.name(token)
        if name in self.defined:
            self.fail(token, f"{token} is already defined in line {self.defined[name]}")
        assert token.line is not None
        self.defined[name] = token.line

    def definition(self, children: Children) -> None:
        """A graph function."""
        token, signature, body = children
        self.functions[self.defined_var(token)] = self.function([None, signature, body])

    def prim_definition(self, children: Children) -> None:
        """A loop function."""
        token, function = children[0]
        self.define_global(token)
        self.functions[self.defined_var(token)] = function

    def defined_var(self, token: Token) -> GlobalVar:
        """The GlobalVar of a function that is defined here."""
        name = self.name(token)
        return self.globals.setdefault(name, (GlobalVar(name), token))[0]

    def definitions(self, _: Children) -> None:
        """All of them."""

    def expression(self, children: Children) -> Expr:
        """The whole text, where an expression is read."""
        return self.close_scope(children[1])

    # Functions and scopes

    def fn_open(self, _: Children) -> None:
        """`fn (`."""
        self.scopes.append(_Scope())

    def signature(self, children: Children) -> tuple[list[Var], object, Attrs, Facts]:
        """Parameters, result type, attributes and annotations: what stands before the body."""
        binders, result, attrs, facts = children
        for token, var in binders or ():
            self.define(token, var)
        return [var for _, var in binders or ()], result, Attrs(attrs) if attrs else NO_ATTRS, facts

    def binder(self, children: Children) -> tuple[Token, Var]:
        """A variable where it is introduced."""
        token, facts = children
        return token, Var(self.name(token), **facts)

    def function(self, children: Children) -> Function:
        """A function, its parameters out of sight again."""
        _, (params, result, attrs, facts), body = children
        body = self.close_scope(body)
        if result is not None and "checked_type" not in facts:
            own_type = FuncType(tuple(param.checked_type for param in params), known(result))
            facts = {**facts, "checked_type": own_type}
        return Function(params, body, attrs, **facts)

    def block_open(self, _: Children) -> None:
        """`{`."""
        self.scopes.append(_Scope())

    def block(self, children: Children) -> Expr:
        """`{ statements result }`."""
        return self.close_scope(children[2])

    def close_scope(self, result: Expr) -> Expr:
        """The value of the innermost scope, which ends here."""
        scope = self.scopes.pop()
        for key in scope.names:
            del self.names[key]
        for let in reversed(scope.lets):
            result = Let(let.var, let.value, result, **let.facts)
        return result

    def define(self, token: Token, value: Expr) -> None:
        """Make a name visible until the innermost scope ends."""
        key = self.key(token)
        if key in self.names:
            self.fail(token, f"{token} is already defined in line {self.names[key][1]}")
        assert token.line is not None
        self.names[key] = value, token.line
        self.scopes[-1].names.append(key)

    def key(self, token: Token) -> Key:
        """A name as it is looked up."""
        return int(token[1:]) if token[1:].isdigit() else self.name(token)

    # Statements

    def statements(self, _: Children) -> None:
        """All of them."""

    def bind(self, children: Children) -> None:
        """`%0 = expression;`."""
        _, token, value = children
        self.define(token.update(value=token.rstrip("= \t\r\n")), value)

    def free_var(self, children: Children) -> None:
        """`free_var %x: type;`."""
        self.define(*children[1])

    def let_head(self, children: Children) -> _Let:
        """`let %x: type = value`, after which the variable can be used."""
        facts, (token, var), value = children
        self.define(token, var)
        return _Let(var, value, facts)

    def let_statement(self, children: Children) -> None:
        """A let with the rest of the scope as its body."""
        self.scopes[-1].lets.append(children[1])

    def let_expression(self, children: Children) -> Let:
        """A let with its body in braces."""
        let, body = children
        del self.names[self.scopes[-1].names.pop()]
        return Let(let.var, let.value, body, **let.facts)

    # Expressions

    def argument(self, children: Children) -> Expr:
        """An expression with its annotations."""
        value, *annotations = children
        if annotations == [None, None, None]:
            return _built(value)
        if not isinstance(value, partial):
            typed, device, span = annotations
            token = typed[0] if typed else device or span
            self.fail(
                token, "an expression is annotated where it is defined; found a name or an annotated one"
            )
        built: Expr = value(**self.facts(annotations))
        return built

    def reference(self, children: Children) -> Expr:
        """A %name."""
        token = children[0]
        try:
            return self.names[self.key(token)][0]
        except KeyError:
            names = (name for name in self.names if isinstance(name, str))
            self.fail(token, f"{token} is not defined", did_you_mean("%", token[1:], names))

    def global_var(self, children: Children) -> Draft:
        """A @name."""
        token = children[0]
        name = self.name(token)
        var, _ = self.globals.setdefault(name, (GlobalVar(name), token))
        return partial(self.annotated, var)

    def constant(self, children: Children) -> Draft:
        """`meta[Constant][0]`."""
        plain = self.constant_at(children[0])
        return partial(self.annotated, plain)

    def literal(self, children: Children) -> Draft:
        """`float32(0.5)` or `int64[1, -1]`."""
        return partial(self.annotated, self.literal_value(children))

    def op(self, children: Children) -> Draft:
        """An operator of the default domain."""
        return self.op_of_domain(['""', children[0]])

    def op_of_domain(self, children: Children) -> Draft:
        """`domain::name`."""
        domain, name = map(self.name, children)
        plain = self.ops.setdefault((name, domain), Op(name, domain))
        return partial(self.annotated, plain)

    def annotated(self, plain: Expr, **facts: Any) -> Expr:
        """An atom with facts: one object for all that are alike, so that constants stay shared."""
        key = (plain, *facts.items())
        return self.atoms.setdefault(key, with_fields(plain, **facts))

    def absent(self, _: Children) -> Draft:
        """`()`."""
        return partial(Tuple, ())

    def group(self, children: Children) -> Expr:
        """`(expression)`."""
        return _built(children[0])

    def tuple_expression(self, children: Children) -> Draft:
        """`(a,)` or `(a, b)`."""
        first, rest = children
        return partial(Tuple, (first, *(rest or ())))

    def item(self, children: Children) -> Draft:
        """`value.0`."""
        value, position = children
        return partial(TupleGetItem, _built(value), int(position[1:]))

    def call(self, children: Children) -> Draft:
        """`callee(arguments, attributes)`."""
        callee, arguments, attributes = children
        return partial(Call, _built(callee), tuple(arguments), Attrs(attributes) if attributes else NO_ATTRS)

    def call_of_nothing(self, children: Children) -> Draft:
        """`callee(attributes)`."""
        callee, attributes = children
        return self.call([callee, (), attributes])

    arguments = parameters = ValueBuilder.grow

    def if_expression(self, children: Children) -> Draft:
        """`if (cond) { ... } else { ... }`."""
        return partial(If, *children)


def _built(value: Expr | Draft) -> Expr:
    built: Expr = value() if isinstance(value, partial) else value
    return built
