"""A function without branches as calls of operators on numbered values."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy.typing as npt

from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
)
from intarsia.ir.rule_errors import named_node
from intarsia.ir.scalar_types import LOOP_DTYPES
from intarsia.ir.traversal import post_order
from intarsia.ir.types import TensorType, Type
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.te.operators import NotCoveredError
from intarsia.op.known_value import known_value
from intarsia.op.purity import is_random
from intarsia.support.errors import CompileError

Ref: TypeAlias = "int | tuple[Ref, ...]"
"""The number of a value, or those of a tuple's fields; () is an absent argument."""

_KEEPING_ELEMENTS = frozenset(
    {
        *("Cast", "CastLike", "Dropout", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose"),
        *("Unsqueeze", "intarsia::device_copy", "intarsia::on_device"),
    }
)
"""Operators that can leave the elements of their first argument in order."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A call of an operator.

    Attributes:
        call: Its attributes and types count; what its arguments are, `args` says.
        args: Numbers of values; None for one left out.
        outputs: Numbers of its results.
    """

    call: Call
    args: tuple[int | None, ...]
    outputs: tuple[int, ...]

    @property
    def op(self) -> Op:
        """The operator."""
        assert isinstance(self.call.op, Op)
        return self.call.op


@dataclass(eq=False)
class StraightLine:
    """A function as steps, while it is read and afterwards.

    Composite functions called in place are part of it. What only renames elements or reshapes makes no step,
    nor do calls whose value is known.

    Attributes:
        values: All values.
        steps: In an order in which they can run.
        params: Numbers of the parameters.
        results: Numbers of the results, tuples flattened.
    """

    values: list[RegionValue] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    params: tuple[int, ...] = ()
    results: tuple[int, ...] = ()

    @classmethod
    def of(cls, function: Function) -> StraightLine:
        """Read a typed function.

        Raises:
            CompileError: It has branches, calls of functions that are not in place, types that are not known
                or that native kernels have not.
        """
        made = cls()
        known: dict[Expr, Ref] = {}
        for param in function.params:
            known[param] = made._value(param.checked_type, "a parameter")
        made.params = tuple(ref for ref in known.values() if isinstance(ref, int))
        made.results = tuple(_flattened(made._read(function.body, known)))
        return made

    def _read(self, body: Expr, known: MutableMapping[Expr, Ref]) -> Ref:
        """Add what an expression needs; returns its value.

        Args:
            body: The expression.
            known: What is computed already. Only values around a function in place have a say in it.
        """
        bound: dict[Var, Expr] = {}
        for expr in post_order(body, stop=_NotEntered(known)):
            if isinstance(expr, Let):
                bound[expr.var] = expr.value
        for expr in post_order(body, stop=_NotEntered(known)):
            if isinstance(expr, Var) and expr in bound:
                continue
            if not isinstance(expr, Op | GlobalVar):
                known[expr] = self._evaluated(expr, known, bound)
        return known[_unbound(body, bound)]

    def _evaluated(self, expr: Expr, known: MutableMapping[Expr, Ref], bound: dict[Var, Expr]) -> Ref:
        def ref(used: Expr) -> Ref:
            return known[_unbound(used, bound)]

        match expr:
            case Constant():
                return self._value(expr.checked_type, "a constant", constant=expr.data)
            case Tuple():
                return tuple(ref(item) for item in expr.fields)
            case TupleGetItem():
                fields = ref(expr.tuple_value)
                assert isinstance(fields, tuple)
                return fields[expr.index]
            case Let():
                return ref(expr.body)
            case Call(op=Function() as function) if "Compiler" not in function.attrs:
                given: dict[Expr, Ref] = dict(zip(function.params, map(ref, expr.args), strict=True))
                inner = ChainMap(given, known)
                return self._read(function.body, inner)
            case Call(op=Op() as op) if any(isinstance(arg, Function) for arg in expr.args):
                with named_node(expr):
                    raise NotCoveredError(f"operator {str(op)!r} has no native kernel: it runs a function")
            case Call(op=Op()):
                with named_node(expr):
                    return self._called(expr, tuple(ref(arg) for arg in expr.args))
            case _:
                raise CompileError(f"a native region cannot have {_described(expr)}")

    def _called(self, call: Call, args: tuple[Ref, ...]) -> Ref:
        name = f"operator {str(call.op)!r}"
        given = tuple(_argument(arg, name) for arg in args)
        value = known_value(call)
        if value is not None and value.ndim == len(_shape(call.checked_type)):
            return self._value(call.checked_type, name, constant=value)
        if _keeps_elements(call) and given[0] is not None:
            if self.values[given[0]].type == call.checked_type:
                return given[0]
            return self._value(call.checked_type, name, same_as=given[0])
        types = call.checked_type.fields if isinstance(call.checked_type, TupleType) else (call.checked_type,)
        outputs = tuple(self._value(type_, name) for type_ in types)
        self.steps.append(Step(call, given, outputs))
        return outputs if isinstance(call.checked_type, TupleType) else outputs[0]

    def _value(
        self,
        type_: Type | None,
        what: str,
        same_as: int | None = None,
        constant: npt.NDArray[Any] | None = None,
    ) -> int:
        """Number a new value."""
        if not isinstance(type_, TensorType) or not type_.is_static or type_.dtype not in LOOP_DTYPES:
            shown = "an unknown type" if type_ is None else str(type_)
            raise NotCoveredError(f"{what} of {shown} has no native kernel")
        number = len(self.values)
        if same_as is not None:
            original = self.values[same_as]
            if original.constant is not None:
                constant = original.constant.reshape(type_.static_shape)
            else:
                number = original.same_as
        if constant is not None and not constant.flags.c_contiguous:
            constant = constant.copy(order="C")
        self.values.append(RegionValue(type_, number, constant))
        return len(self.values) - 1


@dataclass(frozen=True, slots=True)
class _NotEntered:
    """Where a walk stops: at functions, which are read where they are called, and at what is computed."""

    known: MutableMapping[Expr, Ref]

    def __contains__(self, expr: object) -> bool:
        return isinstance(expr, Function) or expr in self.known


def _unbound(expr: Expr, bound: dict[Var, Expr]) -> Expr:
    while isinstance(expr, Var) and expr in bound:
        expr = bound[expr]
    return expr


def _argument(ref: Ref, name: str) -> int | None:
    if isinstance(ref, int):
        return ref
    if ref:
        raise NotCoveredError(f"{name} has no native kernel for a tuple as argument")
    return None


def _flattened(ref: Ref) -> list[int]:
    """The numbers in a reference, in order; tuples nest as deeply as the result's type does."""
    if isinstance(ref, int):
        return [ref]
    if not ref:
        raise NotCoveredError("a native region has no absent results")
    return [number for item in ref for number in _flattened(item)]


def _shape(type_: Type | None) -> tuple[int, ...]:
    return type_.static_shape if isinstance(type_, TensorType) and type_.is_static else ()


def _described(expr: Expr) -> str:
    match expr:
        case Call():
            return f"a call of a {type(expr.op).__name__}"
        case Var():
            return f"the free variable {expr.name}"
        case _:
            return f"an expression {type(expr).__name__}"


def _keeps_elements(call: Call) -> bool:
    """Whether a typed call of an operator gives the elements of its first argument as they are.

    Reshapes do; Cast to the same type, Expand to the same size, Dropout in inference and Transpose that
    moves axes of extent 1 only do, too.
    """
    if not isinstance(call.op, Op) or str(call.op) not in _KEEPING_ELEMENTS or is_random(call):
        return False
    given, made = call.args[0].checked_type, call.checked_type
    if not isinstance(given, TensorType) or not isinstance(made, TensorType):
        return False
    if given.dtype is not made.dtype or not (given.is_static and made.is_static):
        return False
    if call.op.name == "Transpose":
        return _keeps_order(call, given.static_shape)
    return call.op.name != "Expand" or _extents_above_one(given.static_shape) == _extents_above_one(
        made.static_shape
    )


def _keeps_order(call: Call, shape: tuple[int, ...]) -> bool:
    """Whether the axes that have more than one element stay in order."""
    order = call.attrs.get("perm", tuple(reversed(range(len(shape)))))
    assert isinstance(order, tuple)
    long = [axis for axis in order if isinstance(axis, int) and shape[axis] != 1]
    return long == sorted(long)


def _extents_above_one(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent != 1)
