"""GroupNormalization below opset 21, where scale and bias have an element per group instead of per channel.

onnx's converter silently keeps them as they are. Source: GroupNormalization in onnx's Changelog.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from intarsia.support.errors import InvalidModelError

if TYPE_CHECKING:
    from onnx import NodeProto

PER_CHANNEL_SINCE: Final = 21


def repeat_per_channel(
    node: NodeProto, groups: int, channels: int | None, names: Iterator[str]
) -> list[NodeProto]:
    """The node with each element of its scale and bias repeated for all channels of its group.

    Args:
        node: Node of opset 18 to 20; changed in place.
        groups: Its attribute `num_groups`.
        channels: The size of dimension 1 of its input; None to compute it when the model runs.
        names: New names of values.

    Raises:
        InvalidModelError: It has other than 3 inputs, or the channels do not fall into that many groups.
    """
    from onnx import helper

    if len(node.input) != 3:
        raise InvalidModelError(
            f"operator 'GroupNormalization' has {len(node.input)} inputs, expected X, scale and bias"
        )
    if groups < 1 or (channels is not None and channels % groups):
        raise InvalidModelError(
            f"operator 'GroupNormalization' has {channels} channels, which do not make {groups} equal groups"
        )
    axis, flat = next(names), next(names)
    shape, added = _shape(node.input[0], groups, channels, names)
    added += [
        helper.make_node("Constant", [], [axis], value_ints=[1]),
        helper.make_node("Constant", [], [flat], value_ints=[-1]),
    ]
    for position in (1, 2):
        column, grid, repeated = next(names), next(names), next(names)
        added += [
            helper.make_node("Unsqueeze", [node.input[position], axis], [column]),
            helper.make_node("Expand", [column, shape], [grid]),
            helper.make_node("Reshape", [grid, flat], [repeated]),
        ]
        node.input[position] = repeated
    return [*added, node]


def _shape(data: str, groups: int, channels: int | None, names: Iterator[str]) -> tuple[str, list[NodeProto]]:
    """The name of (groups, channels of each), and the nodes that make it."""
    from onnx import helper

    result = next(names)
    if channels is not None:
        return result, [helper.make_node("Constant", [], [result], value_ints=[groups, channels // groups])]
    count, total, per_group = next(names), next(names), next(names)
    return result, [
        helper.make_node("Constant", [], [count], value_ints=[groups]),
        helper.make_node("Shape", [data], [total], start=1, end=2),
        helper.make_node("Div", [total, count], [per_group]),
        helper.make_node("Concat", [count, per_group], [result], axis=0),
    ]
