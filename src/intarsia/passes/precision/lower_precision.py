"""A function with its heavy operators in a narrower type: which values are narrow, where casts stand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    post_order,
    with_children,
    with_fields,
)
from intarsia.op.infer import infer_call_type, typed
from intarsia.op.onnx_types import elem_type_of
from intarsia.op.operator_facts import PrecisionKind
from intarsia.op.precision import takes
from intarsia.op.purity import is_random
from intarsia.passes.functions.sealed import is_sealed
from intarsia.support.errors import InvalidModelError

LARGEST_ERROR = 0.01
"""Relative rounding error above which a constant of one element is not cast."""


class LowerPrecision:
    """Rewrites one function; every value has a form of its own, and is cast to the other where that is used.

    Args:
        dtype: The narrow type, in place of float32.
        kind: Treatment of the operator of a call.

    Attributes:
        declined: Calls that keep float32 because of a constant that the type cannot hold; with that.
    """

    def __init__(self, dtype: DType, kind: Callable[[Call], PrecisionKind]) -> None:
        self.declined: dict[Call, Constant] = {}
        self._dtype, self._kind = dtype, kind
        self._done: dict[Expr, Expr] = {}
        self._is_narrow: set[Expr] = set()
        self._casts: dict[tuple[Expr, DType], Expr] = {}
        self._constants: dict[Constant, Constant | None] = {}

    def function(self, root: Function, keep_io: bool) -> Function:
        """The function in mixed precision.

        Args:
            root: The function; functions inside that are compiled on their own are left as they are.
            keep_io: Whether its parameters and results keep their types.
        """
        sealed = {node for node in post_order(root) if node is not root and is_sealed(node)}
        for param in root.params if not keep_io else ():
            self._narrow_param(param)
        for node in post_order(root.body, stop=sealed | set(root.params)):
            self._done[node] = self._rewritten(node)
        if not keep_io:
            return self._with_narrow_io(root)
        return with_fields(root, body=self._wide(root.body))

    def _with_narrow_io(self, root: Function) -> Function:
        params = tuple(self._done.get(param, param) for param in root.params)
        body = self._narrowed(root.body)
        if body is root.body and params == root.params:
            return root
        new = typed(with_fields(root, params=params, body=body, checked_type=None))
        assert isinstance(new, Function)
        return new

    def _narrow_param(self, param: Var) -> None:
        if _is_float32(param.checked_type):
            narrow = with_fields(param, checked_type=_with_dtype(param.checked_type, self._dtype))
            self._done[param] = narrow
            self._is_narrow.add(param)

    def _rewritten(self, node: Expr) -> Expr:
        match node:
            case Call(op=Op()) if not is_random(node):
                return self._cancelled(node) or self._lowered(node) or self._kept(node)
            case TupleGetItem(tuple_value=whole, index=index) if whole in self._is_narrow:
                item = _field(self._done[whole], index, node)
                if item.checked_type != node.checked_type:
                    self._is_narrow.add(node)
                return item
            case _:
                return self._kept(node)

    def _kept(self, node: Expr) -> Expr:
        """The same over values of the types that it has been given."""
        current = with_children(node, tuple(map(self._wide, children(node))))
        return current if current is node else typed(current)

    def _cancelled(self, call: Call) -> Expr | None:
        """A cast to the narrow type of what is narrow already."""
        assert isinstance(call.op, Op)
        is_cast = call.op.name == "Cast" and call.attrs.get("to") == elem_type_of(self._dtype)
        if not is_cast or call.args[0] not in self._is_narrow:
            return None
        new = self._done[call.args[0]]
        return new if new.virtual_device == call.virtual_device else None

    def _lowered(self, call: Call) -> Expr | None:
        """The call on narrow values, if its operator is lowered or follows and everything fits."""
        assert isinstance(call.op, Op)
        kind = self._kind(call)
        if kind is PrecisionKind.KEEP or call.checked_type is None:
            return None
        positions = {i for i, arg in enumerate(call.args) if self._can_cast(call.op, i, arg)}
        computed = [call.args[i] for i in positions if not isinstance(call.args[i], Constant)]
        if not computed or (kind is PrecisionKind.FOLLOW and not self._is_narrow.issuperset(computed)):
            return None
        constants = (arg for i, arg in enumerate(call.args) if i in positions and isinstance(arg, Constant))
        wide = next((constant for constant in constants if self._narrow_constant(constant) is None), None)
        if wide is not None:
            self.declined[call] = wide
            return None
        narrow = (self._narrow(arg) if i in positions else self._wide(arg) for i, arg in enumerate(call.args))
        return self._typed_call(call, tuple(narrow))

    def _can_cast(self, op: Op, position: int, arg: Expr) -> bool:
        return _is_float32(arg.checked_type) and takes(op.name, position, self._dtype)

    def _typed_call(self, call: Call, args: tuple[Expr, ...]) -> Expr | None:
        try:
            inferred = infer_call_type(call.op, args, call.attrs)
        except InvalidModelError:
            return None  # a combination of types that the operator does not take
        if inferred is None or call.checked_type is None:
            return None
        own_type = _with_dtypes_of(call.checked_type, inferred)
        if own_type != call.checked_type:
            self._is_narrow.add(call)
        return typed(with_fields(call, args=args, checked_type=own_type))

    def _wide(self, node: Expr) -> Expr:
        """The value in its original type."""
        new = self._done.get(node, node)
        if node not in self._is_narrow or node.checked_type is None:
            return new
        return self._as(new, node.checked_type)

    def _as(self, new: Expr, own_type: Type) -> Expr:
        match own_type:
            case TensorType(dtype=dtype) if new.checked_type != own_type:
                return self._cast(new, dtype)
            case TupleType(fields=fields) if new.checked_type != own_type:
                items = tuple(self._as(_field(new, i, new), item) for i, item in enumerate(fields))
                return Tuple(items, span=new.span, virtual_device=new.virtual_device)
            case _:
                return new

    def _narrow(self, node: Expr) -> Expr:
        """The value, of float32, in the narrow type."""
        new = self._done.get(node, node)
        if node in self._is_narrow:
            return new
        if isinstance(new, Constant):
            constant = self._narrow_constant(new)
            return self._cast(new, self._dtype) if constant is None else constant
        if isinstance(new, Call) and isinstance(new.op, Op) and new.op.name == "Cast":
            source = new.args[0]
            is_beside = source.virtual_device == new.virtual_device
            if isinstance(source.checked_type, TensorType) and source.checked_type.dtype is self._dtype:
                return source if is_beside else self._cast(new, self._dtype)
        return self._cast(new, self._dtype)

    def _narrowed(self, node: Expr) -> Expr:
        """A result of the function, with all of float32 in it in the narrow type."""
        match node.checked_type:
            case TensorType() as own if own.dtype is DType.FLOAT32:
                return self._narrow(node)
            case TupleType() if isinstance(node, Tuple):
                fields = tuple(map(self._narrowed, node.fields))
                return with_fields(node, fields=fields, checked_type=Tuple(fields).checked_type)
            case TupleType(fields=types):
                whole = self._wide(node)
                narrow = (_with_dtype(item, self._dtype) if _is_float32(item) else item for item in types)
                return self._as(whole, TupleType(tuple(narrow)))
            case _:
                return self._wide(node)

    def _cast(self, new: Expr, dtype: DType) -> Expr:
        """One cast of each value to each type."""
        if (new, dtype) not in self._casts:
            attrs = Attrs({"to": elem_type_of(dtype)})
            own_type = _with_dtype(new.checked_type, dtype)
            cast = Call(Op("Cast"), (new,), attrs, checked_type=own_type, span=new.span)
            self._casts[new, dtype] = with_fields(cast, virtual_device=new.virtual_device)
        return self._casts[new, dtype]

    def _narrow_constant(self, constant: Constant) -> Constant | None:
        """The constant in the narrow type; None if that cannot hold it."""
        if constant not in self._constants:
            with np.errstate(over="ignore", under="ignore"):
                data = constant.data.astype(self._dtype.numpy)
            back, finite = data.astype(np.float32), np.isfinite(constant.data)
            fits = bool(np.isfinite(back[finite]).all())
            if constant.data.size == 1 and fits:
                error = np.abs(back[finite] - constant.data[finite])
                fits = bool((error <= LARGEST_ERROR * np.abs(constant.data[finite])).all())
            own_type = _with_dtype(constant.checked_type, self._dtype)
            narrow = with_fields(constant, data=data, checked_type=own_type)
            self._constants[constant] = narrow if fits else None
        return self._constants[constant]


def _field(whole: Expr, index: int, like: Expr) -> TupleGetItem:
    return TupleGetItem(whole, index, span=like.span, virtual_device=like.virtual_device)


def _is_float32(own_type: Type | None) -> bool:
    return isinstance(own_type, TensorType) and own_type.dtype is DType.FLOAT32


def _with_dtype(own_type: Type | None, dtype: DType) -> TensorType:
    assert isinstance(own_type, TensorType)
    return TensorType(own_type.shape, dtype)


def _with_dtypes_of(own_type: Type, inferred: Type) -> Type:
    """The type with the element types of the inferred one: its shapes may say more."""
    match own_type, inferred:
        case TensorType(), TensorType(dtype=dtype):
            return TensorType(own_type.shape, dtype)
        case TupleType(), TupleType() if len(own_type.fields) == len(inferred.fields):
            return TupleType(tuple(map(_with_dtypes_of, own_type.fields, inferred.fields)))
        case _:
            return inferred
