"""Functions without branches as calls of operators on numbered values."""

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
from intarsia.ir.scalar_types import LOOP_DTYPES, UNPACKED
from intarsia.ir.traversal import post_order
from intarsia.ir.types import TensorType, Type
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.packing import is_transposed
from intarsia.native.te.operators import NotCoveredError
from intarsia.op.known_value import known_value
from intarsia.op.purity import is_random
from intarsia.support.errors import CompileError

Ref: TypeAlias = "int | tuple[Ref, ...]"
"""Number of a value, or references of a tuple's fields; () for an absent argument."""

_KEEPING_ELEMENTS = frozenset(
    {
        *("Cast", "CastLike", "Dropout", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose"),
        *("Unsqueeze", "intarsia::device_copy", "intarsia::on_device"),
    }
)
"""Operators that can leave the elements of their first argument in order."""

_PARTITION = (
    "control flow stays outside of kernels: build(partition_whole(mod, target)), of intarsia.passes; "
    "tune and the commands do so"
)


@dataclass(frozen=True, slots=True, eq=False)
class KernelStep:
    """A call of an operator.

    Attributes:
        call: Call with the attributes and types; its argument expressions are ignored in favour of `args`.
        args: Numbers of the arguments; None for an absent one.
        outputs: Numbers of the results.
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
    """A function as steps, during and after reading.

    Composite functions called in place are inlined. Reshapes and other calls that keep the elements give no
    step, nor do calls whose value is constant.

    Attributes:
        values: Values of the function.
        steps: Steps in an executable order.
        params: Numbers of the parameters.
        results: Numbers of the results, tuples flattened.
    """

    values: list[RegionValue] = field(default_factory=list)
    steps: list[KernelStep] = field(default_factory=list)
    params: tuple[int, ...] = ()
    results: tuple[int, ...] = ()

    @classmethod
    def of(cls, function: Function) -> StraightLine:
        """Read a typed function.

        Raises:
            CompileError: It has branches, calls of functions that are not in place, or types that are unknown
                or that native kernels do not support.
        """
        line = cls()
        refs: dict[Expr, Ref] = {}
        for param in function.params:
            refs[param] = line._add_value(param.checked_type, "a parameter")
        line.params = tuple(ref for ref in refs.values() if isinstance(ref, int))
        line.results = tuple(_flattened(line._read(function.body, refs)))
        return line

    def _read(self, body: Expr, refs: MutableMapping[Expr, Ref]) -> Ref:
        """Add the values and steps of an expression, and return its reference.

        Args:
            body: The expression.
            refs: References of the expressions computed so far; functions in place see only the enclosing
                ones.
        """
        bound: dict[Var, Expr] = {}
        for expr in post_order(body, stop=_NotEntered(refs)):
            if isinstance(expr, Let):
                bound[expr.var] = expr.value
        for expr in post_order(body, stop=_NotEntered(refs)):
            if isinstance(expr, Var) and expr in bound:
                continue
            if not isinstance(expr, Op | GlobalVar):
                refs[expr] = self._evaluate(expr, refs, bound)
        return refs[_unbound(body, bound)]

    def _evaluate(self, expr: Expr, refs: MutableMapping[Expr, Ref], bound: dict[Var, Expr]) -> Ref:
        def ref(used: Expr) -> Ref:
            return refs[_unbound(used, bound)]

        match expr:
            case Constant():
                return self._add_value(expr.checked_type, "a constant", constant=expr.data)
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
                inner = ChainMap(given, refs)
                return self._read(function.body, inner)
            case Call(op=Op() as op) if any(isinstance(arg, Function) for arg in expr.args):
                with named_node(expr):
                    problem = f"operator {str(op)!r} has no native kernel: it runs a function"
                    raise NotCoveredError(problem, help=_PARTITION)
            case Call(op=Op()):
                with named_node(expr):
                    return self._add_call(expr, tuple(ref(arg) for arg in expr.args))
            case _:
                raise CompileError(f"a native region cannot have {_described(expr)}", help=_PARTITION)

    def _add_call(self, call: Call, args: tuple[Ref, ...]) -> Ref:
        name = f"operator {str(call.op)!r}"
        given = tuple(_argument(arg, name) for arg in args)
        value = known_value(call)
        if value is not None and value.ndim == len(_shape(call.checked_type)):
            return self._add_value(call.checked_type, name, constant=value)
        if _keeps_elements(call) and given[0] is not None:
            if self.values[given[0]].type == call.checked_type:
                return given[0]
            return self._add_value(call.checked_type, name, same_as=given[0])
        types = call.checked_type.fields if isinstance(call.checked_type, TupleType) else (call.checked_type,)
        outputs = tuple(self._add_value(type_, name) for type_ in types)
        self.steps.append(KernelStep(call, given, outputs))
        return outputs if isinstance(call.checked_type, TupleType) else outputs[0]

    def _add_value(
        self,
        type_: Type | None,
        what: str,
        same_as: int | None = None,
        constant: npt.NDArray[Any] | None = None,
    ) -> int:
        """Add a value, and return its number."""
        is_read_once = constant is not None and same_as is None
        dtypes = LOOP_DTYPES | UNPACKED.keys() if is_read_once else LOOP_DTYPES
        if not isinstance(type_, TensorType) or not type_.is_static or type_.dtype not in dtypes:
            shown = "an unknown type" if type_ is None else str(type_)
            raise NotCoveredError(f"{what} of {shown} has no native kernel")
        number = len(self.values)
        if same_as is not None:
            original = self.values[same_as]
            if original.constant is not None:
                constant = original.constant.reshape(type_.static_shape)
            else:
                number = original.same_as
        if constant is not None and not (constant.flags.c_contiguous or is_transposed(constant)):
            constant = constant.copy(order="C")
        self.values.append(RegionValue(type_, number, constant))
        return len(self.values) - 1


@dataclass(frozen=True, slots=True)
class _NotEntered:
    """Expressions at which a walk stops: functions, which are read at their calls, and computed ones."""

    refs: MutableMapping[Expr, Ref]

    def __contains__(self, expr: object) -> bool:
        return isinstance(expr, Function) or expr in self.refs


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
    """Return the numbers in a reference, in order; tuples nest as deeply as the result's type."""
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
    """Return whether a typed call returns the elements of its first argument unchanged.

    Reshapes do, and so do Cast to the same type, Expand to the same size, Dropout in inference, and Transpose
    that only moves axes of extent 1.
    """
    if not isinstance(call.op, Op) or str(call.op) not in _KEEPING_ELEMENTS or is_random(call):
        return False
    given, result = call.args[0].checked_type, call.checked_type
    if not isinstance(given, TensorType) or not isinstance(result, TensorType):
        return False
    if given.dtype is not result.dtype or not (given.is_static and result.is_static):
        return False
    if call.op.name == "Transpose":
        return _keeps_order(call, given.static_shape)
    return call.op.name != "Expand" or _extents_above_one(given.static_shape) == _extents_above_one(
        result.static_shape
    )


def _keeps_order(call: Call, shape: tuple[int, ...]) -> bool:
    """Return whether axes with more than one element stay in order."""
    order = call.attrs.get("perm", tuple(reversed(range(len(shape)))))
    assert isinstance(order, tuple)
    long = [axis for axis in order if isinstance(axis, int) and shape[axis] != 1]
    return long == sorted(long)


def _extents_above_one(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent != 1)
