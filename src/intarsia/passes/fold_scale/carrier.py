"""Operators that a multiplication can be moved through: what they do to a scaled tensor is scaled itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from intarsia.ir import ABSENT, Call, Constant, Expr
from intarsia.passes.fold_scale.scale import FLOATS, Acceptance, Scale
from intarsia.passes.rules.tensor_facts import (
    constant_ints,
    dims_of,
    dtype_of,
    int_attr,
    ints_attr,
    operator_name,
)

_ANY_SIGN: Final = frozenset({"Neg", "Identity", "Transpose"})
_POSITIVE: Final = frozenset({"Relu", "LeakyRelu", "Abs"})
_POOLS: Final = frozenset({"AveragePool", "GlobalAveragePool"})
_POSITIVE_POOLS: Final = frozenset({"MaxPool", "GlobalMaxPool"})
_LINEAR_REDUCTIONS: Final = frozenset({"ReduceMean", "ReduceSum"})


@dataclass(frozen=True, slots=True, eq=False)
class Carrier:
    """A call through whose first argument a scale can be moved.

    Attributes:
        call: The call.
        is_positive_only: Whether the factors must not be negative.
        axes: The axis of the result for each axis of the argument along which factors may differ.
    """

    call: Call
    is_positive_only: bool
    axes: dict[int, int]

    @property
    def data(self) -> Expr:
        """The argument that is scaled."""
        return self.call.args[0]

    def from_data(self, acceptance: Acceptance) -> Acceptance | None:
        """What can be taken as a scale of the result, if the argument takes that."""
        return self._moved(acceptance, self.axes)

    def from_result(self, acceptance: Acceptance) -> Acceptance | None:
        """What can be taken as a scale of the argument, if the result takes that."""
        return self._moved(acceptance, {after: before for before, after in self.axes.items()})

    def _moved(self, acceptance: Acceptance, axes: dict[int, int]) -> Acceptance | None:
        is_positive_only = acceptance.is_positive_only or self.is_positive_only
        axis = acceptance.axis
        if axis is None and not self._moves_every_axis:
            axis = next(iter(axes), None) if len(axes) == 1 else -1
        if axis is not None and axis not in axes:
            return None
        return replace(
            acceptance, axis=None if axis is None else axes[axis], is_positive_only=is_positive_only
        )

    @property
    def _moves_every_axis(self) -> bool:
        dims = dims_of(self.data)
        return dims is not None and len(self.axes) == len(dims)

    def to_data(self, scale: Scale) -> Scale:
        """A scale of the result as one of the argument."""
        before = {after: before for before, after in self.axes.items()}
        return scale.along(None if scale.axis is None else before[scale.axis])

    def to_result(self, scale: Scale) -> Scale:
        """A scale of the argument as one of the result."""
        return scale.along(None if scale.axis is None else self.axes[scale.axis])


def carrier_of(expr: Expr) -> Carrier | None:
    """The call of an expression as a carrier, if a scale can be moved through it."""
    if not isinstance(expr, Call) or dtype_of(expr) not in FLOATS or not expr.args:
        return None
    dims = dims_of(expr.args[0])
    axes = None if dims is None else _axes(expr, operator_name(expr), len(dims))
    if not axes:
        return None
    return Carrier(expr, operator_name(expr) in _POSITIVE | _POSITIVE_POOLS, axes)


def _axes(call: Call, name: str, rank: int) -> dict[int, int] | None:
    if name == "Transpose":
        permutation = ints_attr(call.attrs, "perm") or tuple(reversed(range(rank)))
        return {before: after for after, before in enumerate(permutation)}
    if name in _ANY_SIGN | _POSITIVE:
        return {axis: axis for axis in range(rank)}
    if name in _POOLS | _POSITIVE_POOLS:
        return None if "outputs" in call.attrs else {1: 1}
    if name == "Pad":
        return _unpadded(call, rank)
    return _unreduced(call, rank) if name in _LINEAR_REDUCTIONS else None


def _unpadded(pad: Call, rank: int) -> dict[int, int] | None:
    """The axes that a Pad leaves alone, if what it adds stays the same when scaled."""
    pads = constant_ints(pad.args[1])
    if pads is None or len(pads) != 2 * rank:
        return None
    if pad.attrs.get("mode", "constant") == "constant" and not _is_absent_or_zero(pad, 2):
        return None
    return {axis: axis for axis in range(rank) if pads[axis] == pads[axis + rank] == 0}


def _is_absent_or_zero(call: Call, position: int) -> bool:
    if len(call.args) <= position or call.args[position].checked_type == ABSENT:
        return True
    value = call.args[position]
    return isinstance(value, Constant) and not value.data.any()


def _unreduced(call: Call, rank: int) -> dict[int, int] | None:
    """The axes that a reduction leaves where they are."""
    axes = constant_ints(call.args[1]) if len(call.args) > 1 else None
    if not axes or not int_attr(call.attrs, "keepdims", 1):
        return None
    reduced = {axis % rank for axis in axes}
    return {axis: axis for axis in range(rank) if axis not in reduced}
