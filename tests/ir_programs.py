"""Small expressions that tests of the language are made of, and the comparison of programs in every fact."""

import numpy as np

from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    children,
    post_order,
    structural_equal,
)
from intarsia.ir.constant_digest import constant_digest
from intarsia.ir.printer import print_module

F32 = TensorType.of(np.zeros((2, 3), np.float32))
BOOL = TensorType.of(np.zeros((), np.bool_))


def var(name: str = "x", own_type: TensorType = F32) -> Var:
    return Var(name, checked_type=own_type)


def relu(arg: Expr) -> Call:
    return Call(Op("Relu"), (arg,), checked_type=F32)


def add(left: Expr, right: Expr) -> Call:
    return Call(Op("Add"), (left, right), checked_type=F32)


def ones() -> Constant:
    return Constant(np.ones((2, 3), np.float32))


def branch(cond: Expr, first: Expr, second: Expr) -> If:
    return If(cond, first, second, checked_type=F32)


def module(*params: Var, body: Expr) -> IRModule:
    return IRModule.from_expr(Function(params, body))


def chain(length: int, start: Expr) -> Expr:
    """Calls of one operator, each on the result of the one before."""
    op, expr = Op("Relu"), start
    for _ in range(length):
        expr = Call(op, (expr,), checked_type=F32)
    return expr


def assert_same_program(left: IRModule, right: IRModule) -> None:
    """Fail unless two programs agree in structure, types, devices, spans and names of variables."""
    assert structural_equal(left, right)
    assert [v.name for v in left] == [v.name for v in right]
    for name in (v.name for v in left):
        assert_same_facts(left[name], right[name])
    assert print_module(left).text == print_module(right).text


def assert_same_facts(left: Expr, right: Expr) -> None:
    """Fail unless two structurally equal expressions agree in every fact, node by node."""
    pairs = zip(filter(_is_stored, post_order(left)), filter(_is_stored, post_order(right)), strict=True)
    for old, new in pairs:
        _assert_same_node(old, new)
        for a, b in zip(children(old), children(new), strict=True):
            if not _is_stored(a):
                _assert_same_node(a, b)


def _is_stored(expr: Expr) -> bool:
    """Whether it counts how often it is stored; operators, names, constants and absent values do not."""
    in_place = isinstance(expr, (Op, GlobalVar, Constant)) or (isinstance(expr, Tuple) and not expr.fields)
    return not in_place


def _assert_same_node(old: Expr, new: Expr) -> None:
    assert type(old) is type(new)
    assert (old.virtual_device, old.span) == (new.virtual_device, new.span)
    match old, new:
        case (GlobalVar(), GlobalVar()):
            assert old.name == new.name
            return  # its type is that of its function
        case (Op(), Op()):
            assert (old.name, old.domain) == (new.name, new.domain)
        case (Var(), Var()):  # a suffix tells variables of one name apart
            assert new.name == old.name or new.name.startswith(f"{old.name}_")
        case (Constant(), Constant()):
            assert constant_digest(old) == constant_digest(new)
        case (TupleGetItem(), TupleGetItem()):
            assert old.index == new.index
        case _:
            pass
    assert old.checked_type == new.checked_type
