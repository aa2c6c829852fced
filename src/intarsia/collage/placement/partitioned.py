"""A placement as a transformation: the decision in a trace that assigns parts to toolchains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from intarsia.collage.placement.placement import Partition, Placement
from intarsia.ir import IRModule
from intarsia.measure.measure_input import Candidate
from intarsia.op.infer import infer_types
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.tune.placed_candidate import PLACINGS, Retarget
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


def _place_parts(args: Mapping[str, Any], retarget: Retarget) -> tuple[Target, Candidate]:
    partitions = map(Partition.from_json, args["partitions"])
    placement = Placement(
        tuple(replace(part, target=str(retarget(Target.parse(part.target)))) for part in partitions)
    )
    return REFERENCE_TARGET, placement.candidate


PLACINGS.register(partitioned.__name__, _place_parts)
