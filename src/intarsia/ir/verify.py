"""The rules of the language, checked for a whole program at once; iterative and linear.

Here is what an expression says about itself and its arguments; the rules of scopes are in `ir.verify_scopes`,
those of loop functions in `ir.loop_verify`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, assert_never

from intarsia.ir.complaint import Complaint, verify_error
from intarsia.ir.dtype import DType
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
from intarsia.ir.literal import name_text
from intarsia.ir.loop_verify import loop_complaints
from intarsia.ir.module import IRModule
from intarsia.ir.prim_func import PrimFunc
from intarsia.ir.traversal import children, post_order
from intarsia.ir.types import FuncType, SymbolicDim, TensorType, TupleType, Type, is_compatible
from intarsia.ir.verify_scopes import scope_complaints
from intarsia.support.errors import UsageError
from intarsia.target import Target, VirtualDevice

CallCheck: TypeAlias = Callable[[Call], str | None]
"""Says what is wrong with a call of an operator, or None; the operator layer provides one."""
Functions: TypeAlias = dict[str, Function | PrimFunc]


def verify(mod: IRModule, check_call: CallCheck | None = None, *, require_types: bool = False) -> None:
    """Check a program against the rules of the language.

    Args:
        mod: The program.
        check_call: Function that returns the fault of a call of an operator, or None.
        require_types: Whether an expression of unknown type is at fault.

    Raises:
        VerifyError: The program's text, with each complaint below the statement at fault.
    """
    functions = {var.name: function for var, function in mod.functions.items()}
    complaints: list[Complaint] = []
    for owner, function in functions.items():
        if isinstance(function, PrimFunc):
            complaints += loop_complaints(owner, function)
            continue
        complaints += scope_complaints(owner, function)
        for expr in post_order(function):
            texts = list(_own_complaints(expr, functions))
            if check_call is not None and isinstance(expr, Call) and isinstance(expr.op, Op):
                texts += [text for text in (check_call(expr),) if text is not None]
            if require_types and expr.checked_type is None and not isinstance(expr, (Op, GlobalVar)):
                texts.append("the type is unknown")
            complaints += (Complaint(owner, expr, text) for text in texts)
    if complaints:
        raise verify_error(mod, complaints)


def _own_complaints(expr: Expr, functions: Functions) -> Iterator[str]:
    unknown = (child for child in children(expr) if isinstance(child, GlobalVar))
    yield from (f"unknown global function @{name_text(v.name)}" for v in unknown if v.name not in functions)
    match expr:
        case Call():
            yield from _call_complaints(expr, functions)
        case TupleGetItem():
            yield from _item_complaints(expr)
        case If():
            yield from _if_complaints(expr)
        case Let():
            yield from _misfit("the value", expr.value.checked_type, expr.var.checked_type)
            yield from _misfit("the body", expr.body.checked_type, expr.checked_type)
        case Function():
            params = tuple(param.checked_type for param in expr.params)
            yield from _misfit("the function", FuncType(params, expr.body.checked_type), expr.checked_type)
            yield from _device_complaints("the function", expr.virtual_device, expr)
        case Tuple():
            yield from _tuple_complaints(expr)
        case Var() | GlobalVar() | Constant() | Op():
            return
        case _:
            assert_never(expr)


def _misfit(what: str, found: Type | None, expected: Type | None) -> Iterator[str]:
    if not is_compatible(found, expected):
        yield f"{what} is {found}; expected {expected}"


def _call_complaints(call: Call, functions: Functions) -> Iterator[str]:
    if isinstance(call.op, Op):
        return
    callee = functions.get(call.op.name) if isinstance(call.op, GlobalVar) else call.op
    own_type = None if callee is None or isinstance(callee, PrimFunc) else callee.checked_type
    if isinstance(callee, Function):
        yield from _device_complaints("the call", call.virtual_device, callee)
    if own_type is None:
        return
    if not isinstance(own_type, FuncType):
        yield f"a value of type {own_type} is called; expected a function"
    elif len(call.args) != len(own_type.params):
        yield f"found {len(call.args)} as the number of arguments; expected {len(own_type.params)}"
    else:
        for position, pair in enumerate(zip(call.args, own_type.params, strict=True)):
            yield from _misfit(f"argument {position}", pair[0].checked_type, pair[1])
        yield from _misfit("the function's result", own_type.result, call.checked_type)


def _device_complaints(what: str, device: VirtualDevice, function: Function) -> Iterator[str]:
    text = function.attrs.get("target")
    if "Compiler" not in function.attrs or not isinstance(text, str):
        return
    try:
        target = Target(text)
    except UsageError as error:
        yield f"the function's target is wrong: {error.problem}"
        return
    if device.device_type not in (None, target.device_type):
        yield f'{what} is on {device.device_type.kind}, but the function is compiled for "{target}"'


def _tuple_complaints(expr: Tuple) -> Iterator[str]:
    whole = expr.checked_type
    if isinstance(whole, TupleType) and len(whole.fields) == len(expr.fields):
        for position, pair in enumerate(zip(expr.fields, whole.fields, strict=True)):
            yield from _misfit(f"field {position}", pair[0].checked_type, pair[1])
    elif whole is not None:
        yield f"a tuple of {len(expr.fields)} fields is annotated {whole}"


def _item_complaints(expr: TupleGetItem) -> Iterator[str]:
    whole = expr.tuple_value.checked_type
    if isinstance(whole, TupleType):
        if 0 <= expr.index < len(whole.fields):
            yield from _misfit(f"field {expr.index}", whole.fields[expr.index], expr.checked_type)
        else:
            yield f"field {expr.index} of a tuple of {len(whole.fields)} does not exist"
    elif whole is not None:
        yield f"a field is taken of a value of type {whole}; expected a tuple"


def _if_complaints(expr: If) -> Iterator[str]:
    cond = expr.cond.checked_type
    if cond is not None and not _may_be_condition(cond):
        yield f"the condition is {cond}; expected one boolean"
    yield from _misfit("the value of the first branch", expr.true_branch.checked_type, expr.checked_type)
    yield from _misfit("the value of the second branch", expr.false_branch.checked_type, expr.checked_type)


def _may_be_condition(cond: Type) -> bool:
    if not isinstance(cond, TensorType) or cond.dtype is not DType.BOOL:
        return False
    return all(dim == 1 or isinstance(dim, SymbolicDim) for dim in cond.shape or ())
