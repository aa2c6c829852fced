"""The value after a branch, of the values that its two ways end with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, repeat

from intarsia.build.slot_value import (
    FUNCTIONS,
    ChosenFunction,
    Leaf,
    SlotValue,
    leaf_types,
    leaves,
    value_as,
)
from intarsia.build.slots import SlotTable
from intarsia.ir import Type


@dataclass(frozen=True, slots=True)
class JoinedValue:
    """What a branch leaves.

    Attributes:
        value: Nested as that of each way: new slots, and functions, of which the run chooses one.
        true: The slots that the way for a condition that holds ends with.
        false: Slots of the else branch.
        outputs: The new slots.
    """

    value: SlotValue
    true: tuple[int, ...]
    false: tuple[int, ...]
    outputs: tuple[int, ...]


def joined_value(
    cond: int,
    ways: tuple[SlotValue, SlotValue],
    type_: Type | None,
    table: SlotTable,
    slot_of: Callable[[Leaf], int],
) -> JoinedValue:
    """Join two values of one structure.

    Args:
        cond: The slot of the condition.
        ways: The value if it holds, and if not.
        type_: Type of both values, as far as it is known.
        table: Gets the new slots; they are where those of the first way are.
        slot_of: The slot of a value that is no function; an error for one that is.
    """
    true, false, outputs = [], [], []
    joined: list[Leaf] = []
    types: Iterable[Type | None] = chain(leaf_types(type_), repeat(None))
    for first, second, leaf_type in zip(*map(leaves, ways), types, strict=False):
        if isinstance(first, FUNCTIONS) and isinstance(second, FUNCTIONS):
            joined.append(first if first is second else ChosenFunction(cond, first, second))
            continue
        true.append(slot_of(first))
        false.append(slot_of(second))
        outputs.append(table.new(leaf_type, table.devices[true[-1]]))
        joined.append(outputs[-1])
    return JoinedValue(value_as(ways[0], joined), tuple(true), tuple(false), tuple(outputs))
