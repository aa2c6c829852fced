"""Keys and values that are joined with those of the past, as products read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, Expr
from intarsia.passes.rules.tensor_facts import constant_ints, ints_attr, operator_name
from intarsia.passes.tokens.token_twins import LENGTHS, TokenTwins

_TOKENS: Final = LENGTHS[0]
_SWAPPED: Final = (0, 1, 3, 2)
_RANK: Final = 4


@dataclass(frozen=True, slots=True)
class JoinedKeys:
    """A tensor of keys or values of all tokens.

    Attributes:
        joined: Concat of the past and what is new, (texts, shared heads, keys, size).
        groups: Number of times that each head comes, one after the other.
        is_transposed: Whether the last two axes are swapped.
        scale: Factor of the elements.
    """

    joined: Expr
    groups: int = 1
    is_transposed: bool = False
    scale: float = 1.0


def joined_with_past(node: Expr, twins: TokenTwins) -> JoinedKeys | None:
    """Return an expression as keys or values of all tokens; None for another one."""
    groups, is_transposed, scale = 1, False, 1.0
    while twins.past is not None and node not in twins.past.joined:
        if not isinstance(node, Call):
            return None
        match operator_name(node):
            case "Identity":
                node = node.args[0]
            case "Transpose" if groups == 1 and ints_attr(node.attrs, "perm") == _SWAPPED:
                is_transposed, node = not is_transposed, node.args[0]
            case "Mul" | "Div" as name:
                factor = twins.number(node.args[1])
                if factor is None:
                    return None
                scale, node = scale / factor if name == "Div" else scale * factor, node.args[0]
            case "Reshape" if groups == 1:
                repeated = _repeated(node, twins)
                if repeated is None:
                    return None
                groups, node = repeated
            case _:
                return None
    return JoinedKeys(node, groups, is_transposed, scale)


def _repeated(node: Call, twins: TokenTwins) -> tuple[int, Expr] | None:
    """Return how often Reshape(Expand(Unsqueeze(x, 2))) repeats each head, and x; None for other forms."""
    grid = node.args[0]
    column = grid.args[0] if isinstance(grid, Call) and operator_name(grid) == "Expand" else None
    if not isinstance(column, Call) or operator_name(column) != "Unsqueeze":
        return None
    if constant_ints(column.args[1]) != (2,):
        return None
    shapes = [twins.shape(item, _TOKENS) for item in (column.args[0], grid, node)]
    before, between, after = shapes
    if (
        before is None
        or between is None
        or after is None
        or len(before) != _RANK
        or len(between) != _RANK + 1
    ):
        return None
    groups = between[2]
    keeps = between == (*before[:2], groups, *before[2:])
    is_merged = after == (before[0], before[1] * groups, *before[2:])
    return (groups, column.args[0]) if keeps and is_merged else None
