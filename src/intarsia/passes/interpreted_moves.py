"""What only moves elements around loops, in a program of any batch and length, is left to the interpreter."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    Op,
    Tuple,
    TupleGetItem,
    Var,
    children,
    post_order,
    with_children,
    with_fields,
)
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import facts_of
from intarsia.op.purity import is_random
from intarsia.passes.rules.tensor_facts import dims_of, dtype_of, ints_attr, operator_name
from intarsia.target import VirtualDevice
from intarsia.target.reference import REFERENCE_TARGET

_LOOPS: Final = frozenset({"Loop", "Scan"})
_MOVES: Final = frozenset(
    {"Concat", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}
)
"""Operators that move elements and compute nothing."""
_MASKS: Final = frozenset({"Cast", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", *_MOVES})
"""Operators that compare numbers of steps with lengths of sequences."""
_DEVICE: Final = VirtualDevice(REFERENCE_TARGET.device_type, None, REFERENCE_TARGET)


def with_interpreted_moves(module: IRModule) -> IRModule:
    """Mark for the reference what moves elements between orders of dimensions of any size around loops.

    Kernels for any size keep the items of a value one behind another: of (length, batch, 16) each row is an
    item. A program that exporters write for texts first has a Transpose in front of its Scan, and initial
    states whose shape is computed. Neither fits into a region for any size, both cost little beside a loop:

    * what a loop is given that shapes alone determine, such as states of zeros, and comparisons of lengths,
    * each Transpose that swaps two dimensions of any size,
    * what moves elements of parameters or of results of loops that have their items in another axis, or
      makes such results.

    What shapes determine is written twice where something else reads it too.

    Args:
        module: Typed, with symbolic dimensions.
    """
    for name, function in module.graph_functions.items():
        if any(operator_name(expr) in _LOOPS for expr in post_order(function)):
            module = module.with_function(name, _Marking(function).marked())
    return module


class _Marking:
    """The decisions for one function.

    Args:
        function: Typed function.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._nodes = list(post_order(function.body))
        self._users: dict[Expr, list[Expr]] = {}
        for expr in self._nodes:
            for child in children(expr):
                self._users.setdefault(child, []).append(expr)
        self._fixed = _fixed(self._nodes)
        self._moved: set[Expr] = set()

    def marked(self) -> Function:
        """Return the function with its calls marked."""
        for _ in range(2):  # what becomes a parameter of a region may have its items in another axis
            for expr in self._nodes:
                if self._is_move(expr) and self._leaves_its_order(expr):
                    self._moved.add(expr)
            for expr in reversed(self._nodes):
                if self._is_move(expr) and self._is_outside_after(expr):
                    self._moved.add(expr)
        return self._rewritten()

    def _is_move(self, expr: Expr) -> bool:
        is_of_sizes = any(_is_open(item) for item in (expr, *children(expr)))
        return operator_name(expr) in _MOVES and is_of_sizes and expr not in self._fixed

    def _leaves_its_order(self, expr: Expr) -> bool:
        data = [child for child in children(expr) if _is_open(child)]
        is_given = any(self._is_outside(item) and not _is_items_first(item) for item in data)
        return is_given or _swaps_open_axes(expr)

    def _is_outside_after(self, expr: Expr) -> bool:
        """Whether a value has another order, and all that reads it is outside of regions."""
        users = self._users.get(expr, [])
        is_read_outside = all(isinstance(user, Tuple) or self._is_outside(user) for user in users)
        return is_read_outside and not _is_items_first(expr)

    def _is_outside(self, expr: Expr) -> bool:
        """Whether a value is a parameter, of a loop, or moved by the interpreter."""
        if isinstance(expr, TupleGetItem):
            return self._is_outside(expr.tuple_value)
        return isinstance(expr, Var) or operator_name(expr) in _LOOPS or expr in self._moved

    def _rewritten(self) -> Function:
        done: dict[Expr, Expr] = {}
        marked: dict[Expr, Expr] = {}
        for expr in post_order(self._function):
            items = children(expr)
            if operator_name(expr) in _LOOPS:
                new = tuple(self._as_marked(item, done, marked) for item in items)
            else:
                new = tuple(done[item] for item in items)
            done[expr] = with_children(expr, new)
            if expr in self._moved:
                done[expr] = with_fields(done[expr], virtual_device=_DEVICE)
        after = done[self._function]
        assert isinstance(after, Function)
        return after

    def _as_marked(self, expr: Expr, done: dict[Expr, Expr], marked: dict[Expr, Expr]) -> Expr:
        """Return an argument of a loop, with what shapes alone determine of it marked."""
        for item in post_order(expr):
            if item not in self._fixed or isinstance(item, Constant | Op) or item in marked:
                continue
            new = tuple(marked.get(child, done[child]) for child in children(item))
            copied = with_children(with_fields(item), new)
            marked[item] = with_fields(copied, virtual_device=_DEVICE) if isinstance(item, Call) else copied
        return marked.get(expr, done[expr])


def _fixed(nodes: Collection[Expr]) -> frozenset[Expr]:
    """Return what shapes determine, and comparisons of it with integers that a program is given."""
    fixed: set[Expr] = set()
    for node in nodes:
        match node:
            case Constant() | Op() | Tuple(fields=()):
                fixed.add(node)
            case Call(op=Op() as op) if facts_of(op).has(OperatorTrait.READS_SHAPE):
                fixed.add(node)
            case Call(op=Op() as op) if not is_random(node) and not facts_of(op).has(OperatorTrait.HAS_BODY):
                if all(arg in fixed for arg in node.args) or _compares(node, fixed):
                    fixed.add(node)
            case _:
                pass
    return frozenset(fixed)


def _compares(node: Call, fixed: Collection[Expr]) -> bool:
    """Whether a call is of a mask: it reads integers and truth values only, of parameters or such calls."""
    given = [arg for arg in node.args if arg not in fixed]
    is_whole = all((kind := dtype_of(arg)) is not None and not kind.is_float for arg in given)
    return operator_name(node) in _MASKS and is_whole and all(isinstance(arg, Var) for arg in given)


def _open_axes(expr: Expr) -> Iterator[int]:
    """Yield the axes of a tensor that may have any size."""
    for axis, dim in enumerate(dims_of(expr) or ()):
        if not isinstance(dim, int):
            yield axis


def _is_open(expr: Expr) -> bool:
    return any(True for _ in _open_axes(expr))


def _is_items_first(expr: Expr) -> bool:
    """Whether only extents of 1 are in front of and between the dimensions of any size."""
    dims = dims_of(expr) or ()
    last = max(_open_axes(expr), default=0)
    return all(not isinstance(dim, int) or dim == 1 for dim in dims[:last])


def _swaps_open_axes(expr: Expr) -> bool:
    if operator_name(expr) != "Transpose" or not isinstance(expr, Call):
        return False
    axes = set(_open_axes(expr.args[0]))
    order = ints_attr(expr.attrs, "perm") or tuple(reversed(range(len(dims_of(expr.args[0]) or ()))))
    moved = [axis for axis in order if axis in axes]
    return moved != sorted(moved)
