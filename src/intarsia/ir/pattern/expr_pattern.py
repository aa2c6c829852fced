"""The patterns, and how they are written.

    ExprPattern = Wildcard | Absent | IsConstant | IsVar | IsOp | IsCall | IsTuple | IsTupleGet
                | Either | Constrained | Named | Dominates

Patterns are values: equal if they say the same, usable as keys, shared freely. To say that two parts are the
same expression, give both one name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import EllipsisType
from typing import TypeAlias

from intarsia.ir.attributes import Attrs, AttrValue
from intarsia.ir.dtype import DType
from intarsia.ir.pattern.constraint import AttrsAre, Constraint, DTypeIs, ShapeIs, TypeIs
from intarsia.ir.types import Type
from intarsia.support.errors import UsageError


@dataclass(frozen=True, slots=True)
class PatternNode:
    """What all patterns can be made into."""

    def __call__(self, *args: ExprPattern | EllipsisType) -> IsCall:
        """A call of what this pattern matches: `is_op("Add")(wildcard(), is_constant())`.

        Arguments left out at the end, or absent there, do not count; `maybe(...)` stands for one that may be
        left out, `...` at the end for any others.

        Raises:
            UsageError: `...` stands somewhere else.
        """
        return IsCall(_checked(self), *_arguments(args))

    def __or__(self, other: ExprPattern) -> Either:
        """This pattern or the other one; this one is tried first."""
        return Either((_checked(self), other))

    def has_attr(self, **attrs: AttrValue) -> Constrained:
        """Only calls and functions that carry these attributes: `.has_attr(group=1)`.

        Defaults are not known here: `attribute left out` and `attribute given` are different calls.
        """
        return Constrained(_checked(self), AttrsAre(Attrs(attrs)))

    def has_type(self, type_: Type) -> Constrained:
        """Only values of that type."""
        return Constrained(_checked(self), TypeIs(type_))

    def has_dtype(self, *dtypes: DType | str) -> Constrained:
        """Only tensors of one of these element types."""
        return Constrained(_checked(self), DTypeIs(tuple(map(DType, dtypes))))

    def has_shape(self, *shape: int | str | None) -> Constrained:
        """Only tensors of that shape; None fits any size, a string is the name of a symbolic dimension."""
        return Constrained(_checked(self), ShapeIs(shape))

    def optional(self, extend: Callable[[ExprPattern], ExprPattern]) -> Either:
        """This, with or without more around it: `conv.optional(lambda p: is_op("Relu")(p))`."""
        return Either((extend(_checked(self)), _checked(self)))

    def named(self, name: str) -> Named:
        """The same pattern with a name, by which the match gives the expression: one for each name."""
        return Named(_checked(self), name)


@dataclass(frozen=True, slots=True)
class Wildcard(PatternNode):
    """Any value; an argument that is absent is none."""


@dataclass(frozen=True, slots=True)
class Absent(PatternNode):
    """An optional argument that is left out."""


@dataclass(frozen=True, slots=True)
class IsConstant(PatternNode):
    """A constant."""


@dataclass(frozen=True, slots=True)
class IsVar(PatternNode):
    """A variable; of that name, unless it is None."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class IsOp(PatternNode):
    """One of some operators of a domain: what is called, not the call.

    Attributes:
        names: ONNX's names.
        domain: The operators' domain.
    """

    names: tuple[str, ...]
    domain: str = ""

    def commutative(self, left: ExprPattern, right: ExprPattern) -> Either:
        """A call with these two arguments in either order; the given order is tried first."""
        return Either((self(left, right), self(right, left)))


@dataclass(frozen=True, slots=True)
class IsCall(PatternNode):
    """A call.

    Attributes:
        callee: The callee: an operator, a global function or a function value.
        args: Its arguments.
        more: Whether it may have others after these.
    """

    callee: ExprPattern
    args: tuple[ExprPattern, ...]
    more: bool = False


@dataclass(frozen=True, slots=True)
class IsTuple(PatternNode):
    """A tuple that is written out, of exactly these fields."""

    fields: tuple[ExprPattern, ...]


@dataclass(frozen=True, slots=True)
class IsTupleGet(PatternNode):
    """A field of a tuple; any, if `index` is None."""

    tuple_value: ExprPattern
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Either(PatternNode):
    """One of several patterns, tried in order."""

    options: tuple[ExprPattern, ...]


@dataclass(frozen=True, slots=True)
class Constrained(PatternNode):
    """A pattern and a condition."""

    inner: ExprPattern
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class Named(PatternNode):
    """A pattern with a name: the match gives its expression by that name."""

    inner: ExprPattern
    name: str


@dataclass(frozen=True, slots=True)
class Dominates(PatternNode):
    """See `dominates`."""

    parent: ExprPattern
    path: ExprPattern
    child: ExprPattern
    at_most: int


ExprPattern: TypeAlias = (
    Wildcard
    | Absent
    | IsConstant
    | IsVar
    | IsOp
    | IsCall
    | IsTuple
    | IsTupleGet
    | Either
    | Constrained
    | Named
    | Dominates
)


def wildcard() -> Wildcard:
    """Any value."""
    return Wildcard()


def is_absent() -> Absent:
    """An argument that is left out, at the end or before others."""
    return Absent()


def maybe(pattern: ExprPattern | None = None) -> Either:
    """What an argument that may be left out is, if it is there; any value by default."""
    return Either((Wildcard() if pattern is None else pattern, Absent()))


def is_constant() -> IsConstant:
    """A constant; add `.has_shape(...)` or `.has_dtype(...)` to say more."""
    return IsConstant()


def is_var(name: str | None = None) -> IsVar:
    """A variable, of that name if one is given."""
    return IsVar(name)


def is_op(*names: str, domain: str = "") -> IsOp:
    """One of these operators; calling the pattern makes one of calls: `is_op("Neg", "Abs")(wildcard())`.

    Raises:
        UsageError: No name is given.
    """
    if not names:
        raise UsageError('is_op needs the name of an operator, such as is_op("Conv")')
    return IsOp(names, domain)


def is_tuple(*fields: ExprPattern) -> IsTuple:
    """A tuple of exactly these fields, written out."""
    return IsTuple(fields)


def is_tuple_get(tuple_value: ExprPattern, index: int | None = None) -> IsTupleGet:
    """One field of a tuple, or any if no index is given."""
    return IsTupleGet(tuple_value, index)


def dominates(parent: ExprPattern, path: ExprPattern, child: ExprPattern, *, at_most: int = 64) -> Dominates:
    """An expression that all uses of an earlier one lead to (seed collage_rfc: dominator pattern).

    Matches an expression that `child` matches, together with the nearest expression before it that `parent`
    matches, and all between: each of those matches `path`, and is used, as the parent is, for nothing but the
    child. What those between use besides (the other summand of an addition) is an input.

        >>> convolution_then_elementwise = dominates(
        ...     is_op("Conv")(...), is_op("Relu", "Add")(...), is_op("Add")(wildcard(), wildcard())
        ... )

    Names inside `path` are not reported, as it matches often.

    Args:
        parent: The earlier expression.
        path: Every expression between; it should match single calls.
        child: The later expression.
        at_most: Largest number of expressions that are looked at in between: it bounds the cost.
    """
    return Dominates(parent, path, child, at_most)


def _checked(pattern: PatternNode) -> ExprPattern:
    return pattern  # type: ignore[return-value]  # every subclass is one of the kinds


def _arguments(args: tuple[ExprPattern | EllipsisType, ...]) -> tuple[tuple[ExprPattern, ...], bool]:
    more = bool(args) and args[-1] is Ellipsis
    patterns = tuple(arg for arg in args if not isinstance(arg, EllipsisType))
    if len(patterns) + more != len(args):
        raise UsageError("... in a pattern stands for further arguments; expected it at the end only")
    return patterns, more
