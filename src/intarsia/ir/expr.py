"""Expressions: immutable DAGs, compared by identity.

    Expr = Var | GlobalVar | Constant | Tuple | TupleGetItem | Op | Call | Function | Let | If

Facts live on the program: every expression has `checked_type` (None until inferred), `virtual_device` and
`span` (seed virtual_device; DESIGN section 2). Use `with_fields` to change an expression: it keeps the rest.

An expression that is used twice is evaluated once, in the innermost scope (function body, branch of an If,
body of a Let) that encloses all its uses; what the body of a Loop or another operator does not compute from
its own variables is evaluated outside of it; see `ir.scope`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from intarsia.ir.attributes import NO_ATTRS, Attrs
from intarsia.ir.span import Span
from intarsia.ir.types import FuncType, TensorType, TupleType, Type
from intarsia.target import UNCONSTRAINED, VirtualDevice


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True, weakref_slot=True)
class ExprNode:
    """The facts that every expression carries."""

    checked_type: Type | None = None
    virtual_device: VirtualDevice = UNCONSTRAINED
    span: Span | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.checked_type or 'type unknown'}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Var(ExprNode):
    """A parameter or let-bound name; two variables of one name are different variables."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GlobalVar(ExprNode):
    """A reference to a function of the module, found by name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant(ExprNode):
    """A tensor known at compile time. The array is shared, never copied; treat it as read-only."""

    data: npt.NDArray[Any]
    _digest: list[bytes] = field(default_factory=list, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        """A constant always has a type; one of NumPy's scalars becomes an array of rank 0."""
        if isinstance(self.data, np.generic):
            object.__setattr__(self, "data", np.asarray(self.data))
        if self.checked_type is None:
            object.__setattr__(self, "checked_type", TensorType.of(self.data))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tuple(ExprNode):
    """Several values side by side; the empty tuple stands for an absent optional argument."""

    fields: tuple[Expr, ...]

    def __post_init__(self) -> None:
        """A tuple's type follows from its fields'."""
        types = tuple(item.checked_type for item in self.fields)
        if self.checked_type is None and None not in types:
            known = tuple(item for item in types if item is not None)
            object.__setattr__(self, "checked_type", TupleType(known))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TupleGetItem(ExprNode):
    """One field of a tuple, counted from 0."""

    tuple_value: Expr
    index: int

    def __post_init__(self) -> None:
        """A field's type follows from the tuple's."""
        whole = self.tuple_value.checked_type
        if self.checked_type is None and isinstance(whole, TupleType) and self.index < len(whole.fields):
            object.__setattr__(self, "checked_type", whole.fields[self.index])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Op(ExprNode):
    """An operator of ONNX or of the domain "intarsia", by name; the empty domain is ONNX's default."""

    name: str
    domain: str = ""

    def __str__(self) -> str:
        return f"{self.domain}::{self.name}" if self.domain else self.name


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(ExprNode):
    """An operator, global function or function value applied to arguments.

    The attribute `outputs` says that an operator returns a tuple of that many values; without it a call
    returns one value. An absent optional argument is the empty tuple.
    """

    op: Expr
    args: tuple[Expr, ...]
    attrs: Attrs = NO_ATTRS

    def __post_init__(self) -> None:
        """Accept any sequence of arguments and any mapping of attributes."""
        if type(self.args) is not tuple:
            object.__setattr__(self, "args", tuple(self.args))
        if not isinstance(self.attrs, Attrs):
            object.__setattr__(self, "attrs", Attrs(self.attrs))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Function(ExprNode):
    """Parameters and a body; attributes such as Compiler and Primitive say how it is to be built."""

    params: tuple[Var, ...]
    body: Expr
    attrs: Attrs = NO_ATTRS

    def __post_init__(self) -> None:
        """A function's type follows from its parameters and body."""
        if type(self.params) is not tuple:
            object.__setattr__(self, "params", tuple(self.params))
        if not isinstance(self.attrs, Attrs):
            object.__setattr__(self, "attrs", Attrs(self.attrs))
        if self.checked_type is None:
            params = tuple(param.checked_type for param in self.params)
            object.__setattr__(self, "checked_type", FuncType(params, self.body.checked_type))

    @property
    def result_type(self) -> Type | None:
        """Type of the returned value."""
        return self.checked_type.result if isinstance(self.checked_type, FuncType) else None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Let(ExprNode):
    """`let var = value; body`: the value is evaluated first, once."""

    var: Var
    value: Expr
    body: Expr

    def __post_init__(self) -> None:
        """A let has the type of its body."""
        if self.checked_type is None:
            object.__setattr__(self, "checked_type", self.body.checked_type)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class If(ExprNode):
    """Evaluates one of two branches; the condition is a boolean scalar (or one-element tensor)."""

    cond: Expr
    true_branch: Expr
    false_branch: Expr


Expr: TypeAlias = Var | GlobalVar | Constant | Tuple | TupleGetItem | Op | Call | Function | Let | If

E = TypeVar("E", bound=ExprNode)


def with_fields(expr: E, **changes: object) -> E:
    """Copy-on-write: `expr` with some fields changed, or `expr` itself if they are what they were.

    Sub-expressions are compared by identity, types, devices, spans and attributes by value; every other
    field is carried over (seed virtual_device, WithFields).
    """
    if all(_same(getattr(expr, name), value) for name, value in changes.items()):
        return expr
    if isinstance(expr, Constant) and "data" in changes:
        changes.setdefault("_digest", [])
    return replace(expr, **changes)  # type: ignore[arg-type]  # names and types are the caller's fields


def _same(old: object, new: object) -> bool:
    if old is new:
        return True
    if isinstance(old, tuple) and isinstance(new, tuple):
        return len(old) == len(new) and all(map(_same, old, new))
    if isinstance(old, (ExprNode, np.ndarray)) or isinstance(new, (ExprNode, np.ndarray)):
        return False
    return type(old) is type(new) and old == new
