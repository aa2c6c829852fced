"""Transpose chains, and transposes that move no data."""

from __future__ import annotations

from intarsia.ir import Call, Expr
from intarsia.op import call as make_call
from intarsia.passes.rules.reshape_target import reshaped
from intarsia.passes.rules.rule_table import RuleTable
from intarsia.passes.rules.tensor_facts import dims_of, ints_attr, operator_name


def permutation_of(call: Call) -> tuple[int, ...] | None:
    """Which axis of its argument each axis of a Transpose is; None if neither that nor the rank is given."""
    permutation, dims = ints_attr(call.attrs, "perm"), dims_of(call.args[0])
    if permutation is None and dims is not None:
        return tuple(reversed(range(len(dims))))
    return permutation


def identity_transpose(call: Call) -> Expr | None:
    """A Transpose that leaves the axes in order, as its argument."""
    permutation = permutation_of(call)
    is_identity = permutation is not None and permutation == tuple(range(len(permutation)))
    return call.args[0] if is_identity else None


def transpose_of_transpose(call: Call) -> Expr | None:
    """Two transposes as one, unless the second swaps the last two axes: matrix products do that for free.

    OpenVINO runs BERT slower by 1 to 4 % if the transpose of the keys is merged with the one before it.
    """
    inner = call.args[0]
    if operator_name(inner) != "Transpose":
        return None
    assert isinstance(inner, Call)
    outer_permutation, inner_permutation = permutation_of(call), permutation_of(inner)
    if outer_permutation is None or inner_permutation is None:
        return None
    composed = tuple(inner_permutation[axis] for axis in outer_permutation)
    if composed == tuple(range(len(composed))):
        return inner.args[0]
    if _swaps_last_two(outer_permutation):
        return None
    return make_call("Transpose", inner.args[0], perm=composed)


def _swaps_last_two(permutation: tuple[int, ...]) -> bool:
    rank = len(permutation)
    return rank > 2 and permutation == (*range(rank - 2), rank - 1, rank - 2)


def transpose_of_unit_axes(call: Call) -> Expr | None:
    """A Transpose that only moves axes of size 1, as a Reshape: no element changes its place."""
    permutation, dims = permutation_of(call), dims_of(call.args[0])
    if permutation is None or dims is None:
        return None
    moved = [axis for axis in permutation if dims[axis] != 1]
    return reshaped(call.args[0], call.checked_type) if moved == sorted(moved) else None


RULES: RuleTable = {"Transpose": (identity_transpose, transpose_of_transpose, transpose_of_unit_axes)}
