"""Symbolic dimensions become numbers, and with them everything that is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from intarsia.ir import (
    ANY,
    Call,
    Dim,
    Expr,
    Function,
    FuncType,
    IRModule,
    OptionalType,
    SequenceType,
    SymbolicDim,
    TensorType,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    is_compatible,
    post_order,
    with_children,
    with_fields,
)
from intarsia.ir.rule_errors import named_node
from intarsia.op.infer import typed
from intarsia.op.known_value import record_known_value
from intarsia.support.errors import InvalidModelError, UsageError
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class BindDims(FunctionPass, opt_level=0, required=("InferType",)):
    """Replaces symbolic dimensions by numbers, in every type, and infers what follows from them.

    Values of shape arithmetic that become known are recorded, so that FoldConstant and SimplifyExpr see
    them. Linear in the program.

    Source: Relax's BindSymbolicVars.

    Before:
        def @main(%x: Tensor[(batch, 3), float32]) -> Tensor[(batch, 3), float32] { Relu(%x) }
    After:
        def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { Relu(%x) }

    Attributes:
        sizes: Sizes as name=number; a dimension that the program does not have is ignored.

    Raises:
        UsageError: An entry is not of this form.
        InvalidModelError: Types do not fit with these sizes.
    """

    sizes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the form of the sizes."""
        read_sizes(self.sizes)

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with numbers in place of the symbols."""
        return bind_function(
            function, {SymbolicDim(name): size for name, size in read_sizes(self.sizes).items()}
        )


def read_sizes(entries: tuple[str, ...]) -> dict[str, int]:
    """Return sizes by name of the dimension from entries such as batch=2.

    Raises:
        UsageError: An entry is not of this form.
    """
    sizes = {}
    for entry in entries:
        name, equals, size = entry.rpartition("=")
        if not equals or not (size.isascii() and size.isdigit()):
            raise UsageError(f"sizes has {entry!r}, expected a name with a number, such as batch=2")
        sizes[name] = int(size)
    return sizes


def bind_sizes(mod: IRModule, sizes: Mapping[str, int]) -> IRModule:
    """Return the module with numbers in place of symbolic dimensions, by their names.

    Raises:
        InvalidModelError: Types do not fit with these sizes.
    """
    if not sizes:
        return mod
    return BindDims(tuple(f"{name}={size}" for name, size in sizes.items()))(mod)


def name_dims(mod: IRModule) -> IRModule:
    """Return the module with a name for each unknown dimension of @main's parameters: rows[0] for input rows.

    Raises:
        InvalidModelError: Types do not fit.
    """
    main = mod["main"]
    types = {param: _with_names(param) for param in main.params}
    if all(type_ == param.checked_type for param, type_ in types.items()):
        return mod
    return mod.with_function("main", _retype(main, lambda var: types.get(var, var.checked_type), lambda t: t))


def _with_names(param: Var) -> Type | None:
    type_ = param.checked_type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return type_
    dims = (
        SymbolicDim(f"{param.name}[{axis}]") if dim == ANY else dim for axis, dim in enumerate(type_.shape)
    )
    return TensorType(tuple(dims), type_.dtype)


def bind_function(function: Function, sizes: Mapping[SymbolicDim, Dim]) -> Function:
    """Return the function with other dimensions in place of symbolic ones."""

    def bound(type_: Type | None) -> Type | None:
        return _substitute(type_, sizes)

    return _retype(function, lambda var: bound(var.checked_type), bound)


def _retype(
    function: Function,
    type_of_variable: Callable[[Var], Type | None],
    rewritten: Callable[[Type | None], Type | None],
) -> Function:
    """Return the function over variables of other types, with types inferred again where something changes.

    Args:
        function: The function.
        type_of_variable: Gives the new type of a variable.
        rewritten: Gives the new form of a type that the program has: it completes what inference says.
    """
    done: dict[Expr, Expr] = {}
    for node in post_order(function):
        new = with_children(node, tuple(done[child] for child in children(node)))
        type_ = type_of_variable(node) if isinstance(node, Var) else rewritten(node.checked_type)
        match node:
            case _ if new is node and type_ == node.checked_type:
                done[node] = node
            case Var():
                done[node] = with_fields(new, checked_type=type_)
            case Call():
                with named_node(node):
                    done[node] = _infer_again(new, type_)
            case TupleGetItem():  # the tuple's type may have become more exact than its own
                field = typed(with_fields(new, checked_type=None))
                done[node] = with_fields(field, checked_type=_complete(field.checked_type, type_))
            case Function():
                done[node] = typed(with_fields(new, checked_type=None))
            case _:
                done[node] = typed(with_fields(new, checked_type=type_))
    result = done[function]
    assert isinstance(result, Function)
    return result


def _infer_again(call: Expr, before: Type | None) -> Expr:
    """Return a call with its inferred type, completed by what its type was before."""
    inferred = typed(with_fields(call, checked_type=None))
    complete = _complete(inferred.checked_type, before)
    if complete == inferred.checked_type:
        return inferred
    result = with_fields(inferred, checked_type=complete)
    if isinstance(result, Call):
        record_known_value(result)
    return result


def _complete(inferred: Type | None, other: Type | None) -> Type | None:
    """Return the inferred type, with dimensions that only the other type has.

    Raises:
        InvalidModelError: The types contradict each other.
    """
    if inferred is None or other is None:
        return inferred or other
    if not is_compatible(inferred, other):
        raise InvalidModelError(f"a value has the type {inferred} with these sizes, expected {other}")
    match inferred, other:
        case TensorType(), TensorType():
            if inferred.shape is None or other.shape is None:
                return other if inferred.shape is None else inferred
            dims = (
                new if isinstance(new, int) or (old == ANY) else old
                for new, old in zip(inferred.shape, other.shape, strict=True)
            )
            return TensorType(tuple(dims), inferred.dtype)
        case TupleType(), TupleType():
            fields = map(_complete, inferred.fields, other.fields)
            return TupleType(tuple(item for item in fields if item is not None))
        case _:
            return inferred


def _substitute(type_: Type | None, sizes: Mapping[SymbolicDim, Dim]) -> Type | None:
    match type_:
        case TensorType() if type_.shape is not None:
            dims = (sizes.get(dim, dim) if isinstance(dim, SymbolicDim) else dim for dim in type_.shape)
            return TensorType(tuple(dims), type_.dtype)
        case TupleType():
            fields = (_substitute(item, sizes) for item in type_.fields)
            return TupleType(tuple(item for item in fields if item is not None))
        case FuncType():
            params = tuple(_substitute(item, sizes) for item in type_.params)
            return FuncType(params, _substitute(type_.result, sizes))
        case SequenceType() | OptionalType():
            element = _substitute(type_.element, sizes)
            return type_ if element is None else type(type_)(element)
        case _:
            return type_
