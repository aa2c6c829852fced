"""Structural equality and the stable digest, both defined by one canonical form.

The canonical form of an expression is the list of its distinct nodes in post-order, each as its kind, its
own data and the positions of its children in the list. So sharing counts, names of local variables and
spans do not, and two expressions are equal exactly if their lists are. Operators, global names, constants and
absent arguments are written in place, by value: two equal constants are equal however often they are stored.
The form of loop functions is in `loop_canonical`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final, assert_never

from intarsia.ir.attributes import Attrs, AttrValue
from intarsia.ir.constant_digest import constant_digest
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
from intarsia.ir.loop_canonical import loop_entries
from intarsia.ir.module import IRModule
from intarsia.ir.prim_func import PrimFunc
from intarsia.ir.traversal import children, post_order
from intarsia.support.digest import DIGEST_BYTES
from intarsia.target import UNCONSTRAINED

Entry = tuple[object, ...]

WEIGHT_ELEMENTS: Final = 64
"""A floating-point constant with more elements is a weight: its values do not change what is computed how."""


def structural_equal(left: Expr | PrimFunc | IRModule, right: Expr | PrimFunc | IRModule) -> bool:
    """Whether two programs are the same but for names of local variables, spans and derived types."""
    if left is right:
        return True
    if isinstance(left, IRModule) or isinstance(right, IRModule):
        return isinstance(left, IRModule) and isinstance(right, IRModule) and _modules_equal(left, right)
    pairs = zip_longest(_entries(left), _entries(right))
    return all(a == b for a, b in pairs)


def structural_digest(program: Expr | PrimFunc | IRModule, *, weights: bool = True) -> str:
    """A hexadecimal digest, equal for structurally equal programs, in every process and on every machine.

    Args:
        program: An expression or a module.
        weights: Whether the values of weights count, that is, of floating-point constants with more than
            `WEIGHT_ELEMENTS` elements; without, programs that differ in them alone have one digest.
    """
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    if isinstance(program, IRModule):
        state.update(repr(attribute_key(program.attrs)).encode())
        for name, entries in _functions(program, weights):
            state.update(f"def {name}\n".encode())
            _update(state, entries)
    else:
        _update(state, _entries(program, weights))
    return state.hexdigest()


def is_weight(constant: Constant) -> bool:
    """Whether it is a floating-point constant with more than `WEIGHT_ELEMENTS` elements."""
    return DType.of(constant.data).is_float and constant.data.size > WEIGHT_ELEMENTS


def _modules_equal(left: IRModule, right: IRModule) -> bool:
    if attribute_key(left.attrs) != attribute_key(right.attrs):
        return False
    pairs = zip_longest(_functions(left), _functions(right), fillvalue=("", iter(())))
    return all(a == b and all(x == y for x, y in zip_longest(ea, eb)) for (a, ea), (b, eb) in pairs)


def _functions(module: IRModule, weights: bool = True) -> Iterator[tuple[str, Iterator[Entry]]]:
    for var in sorted(module.functions, key=lambda var: var.name):
        yield var.name, _entries(module.functions[var], weights)


def _update(state: hashlib.blake2b, entries: Iterator[Entry]) -> None:
    for entry in entries:
        state.update(repr(entry).encode())
        state.update(b"\n")


def _entries(root: Expr | PrimFunc, weights: bool = True) -> Iterator[Entry]:
    if isinstance(root, PrimFunc):
        yield ("prim", attribute_key(root.attrs))
        yield from loop_entries(root)
    else:
        yield from _expr_entries(root, weights)


def _expr_entries(root: Expr, weights: bool) -> Iterator[Entry]:
    position: dict[Expr, int] = {}
    for node in post_order(root):
        if (in_place := _in_place(node, weights)) is not None:
            if node is root:
                yield in_place
            continue
        below = tuple(_in_place(child, weights) or position[child] for child in children(node))
        position[node] = len(position)
        yield (*_own(node), below)


def _device(expr: Expr) -> str:
    device = expr.virtual_device
    return "" if device is UNCONSTRAINED or device == UNCONSTRAINED else str(device)


def _in_place(expr: Expr, weights: bool) -> Entry | None:
    """The form of an expression that is written where it is used, None for all others."""
    match expr:
        case Op():
            return ("op", expr.domain, expr.name, _device(expr))
        case GlobalVar():
            return ("global", expr.name, _device(expr))
        case Constant() if not weights and is_weight(expr):
            return ("weight", str(expr.checked_type), _device(expr))
        case Constant():
            return ("constant", constant_digest(expr).hex(), _device(expr))
        case Tuple(fields=()):
            return ("absent", _device(expr))
        case _:
            return None


def _own(expr: Expr) -> Entry:
    device = _device(expr)
    match expr:
        case Var():
            return ("var", str(expr.checked_type), device)
        case Call():
            return ("call", attribute_key(expr.attrs), device)
        case Tuple():
            return ("tuple", device)
        case TupleGetItem():
            return ("item", expr.index, device)
        case Function():
            return ("function", attribute_key(expr.attrs), device)
        case Let():
            return ("let", device)
        case If():
            return ("if", device)
        case Op() | GlobalVar() | Constant():
            raise AssertionError(f"{type(expr).__name__} is written in place")
        case _:
            assert_never(expr)


def attribute_key(value: Attrs | AttrValue) -> object:
    """What structural equality compares of attributes, or of a value: 1, 1.0 and True are three values."""
    match value:
        case Attrs():
            return tuple((name, attribute_key(item)) for name, item in value.items())
        case tuple():
            return tuple(map(attribute_key, value))
        case Constant():
            return ("constant", constant_digest(value).hex())
        case float():
            return ("float", value.hex())
        case int() | str() | bytes():
            return (type(value).__name__, value)
        case _:
            return ("type", str(value))
