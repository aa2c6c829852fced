"""A placement as a transformation: the decision in a trace that assigns parts to toolchains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from intarsia.collage.placement.placement import Partition, Placement
from intarsia.ir import IRModule
from intarsia.op.infer import infer_types
from intarsia.tune.transformations import transformation


@transformation
def partitioned(mod: IRModule, partitions: Sequence[Any]) -> IRModule:
    """The module with its partitions as global functions marked for their toolchains.

    Args:
        mod: The program.
        partitions: Partitions as `Partition.to_json` wrote them; their nodes are those of this program.

    Raises:
        UsageError: A partition is malformed, does not fit the module, or overlaps another one.
    """
    return Placement(tuple(map(Partition.from_json, partitions))).applied(infer_types(mod))
