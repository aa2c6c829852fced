"""Specs, estimators and placements in short form, for tests of how Collage searches."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tests.faulty_toolchains import Right

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionRule, PartitionSpec
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.costs.boundary_costs import BoundaryCosts, Crossing
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.function_cover import CoverRecord
from intarsia.collage.placement.placement import Partition
from intarsia.collage.rules.must_be_lowered import must_be_lowered
from intarsia.collage.rules.rule_limits import RuleLimits
from intarsia.collage.rules.typical_rules import (
    JOIN_ANYTHING,
    fuse_ops_rule,
    fused_operators_rule,
    graph_style_rule,
    host_rule,
    pattern_table_rule,
    reference_rule,
)
from intarsia.collage.sub_graph import SubGraphConfig
from intarsia.ir import Call, Op
from intarsia.ir.pattern import is_op, wildcard
from intarsia.measure.measure_result import MeasureError
from intarsia.op.pattern_table import CompositePattern
from intarsia.target import Target

TABLE = (
    CompositePattern("relu", is_op("Relu")(wildcard())),
    CompositePattern("add", is_op("Add")(wildcard(), wildcard())),
    CompositePattern("concat", is_op("Concat")(wildcard(), wildcard())),
)


class One(Right):
    """A right toolchain of another name."""

    name: ClassVar[str] = "one"


class Two(Right):
    """Another one."""

    name: ClassVar[str] = "two"


def spec(name: str, rule: PartitionRule) -> PartitionSpec:
    return PartitionSpec(name, Target.for_toolchain(name), rule)


HOST_SPEC = PartitionSpec("host", Target("cpu"), host_rule())
REFERENCE_SPEC = spec("reference", reference_rule())


def native(max_depth: int = 8) -> PartitionSpec:
    """A toolchain that fuses as FuseOps does."""
    return spec("native", fuse_ops_rule(limits(max_depth)))


def acme(max_depth: int = 8, max_exits: int = 1) -> PartitionSpec:
    """A toolchain that runs Relu, Add and Concat, joined in any way."""
    return spec("acme", pattern_table_rule("acme", TABLE, limits(max_depth, max_exits), JOIN_ANYTHING))


def limits(max_depth: int, max_exits: int = 1) -> RuleLimits:
    return RuleLimits(SubGraphConfig(max_exits=max_exits, max_depth=max_depth, allow_taps=max_exits > 1))


def not_tanh(call: Call) -> bool:
    return isinstance(call.op, Op) and call.op.name != "Tanh"


def some_specs() -> tuple[PartitionSpec, ...]:
    """A graph-style toolchain, one that fuses operators and lacks Tanh, the reference and the host."""
    return (
        spec("one", graph_style_rule(lambda _: True)),
        spec("two", fused_operators_rule(not_tanh)),
        REFERENCE_SPEC,
        HOST_SPEC,
    )


BOUNDARIES = BoundaryCosts(
    {
        (one, other): Crossing(0.1 if one == other else 0.4, 0.0 if one == other else 0.01)
        for one in ("one", "two", "reference")
        for other in ("one", "two", "reference")
    },
    {"one": 0.05, "two": 0.1},
)


@dataclass(eq=False)
class DrawnCosts:
    """Random costs, the same for the same seed, candidate and spec; larger candidates save a part.

    Some candidates are invalid, but none of the reference.
    """

    seed: int
    invalid: float = 0.1
    asked: list[CandidatePartition] = field(default_factory=list)

    def estimate(self, candidates: Sequence[CandidatePartition]) -> list[Estimate]:
        self.asked += candidates
        return list(map(self._drawn, candidates))

    def settle(self, candidates: Sequence[CandidatePartition]) -> list[Estimate]:
        return list(map(self._drawn, candidates))

    def seconds_left(self) -> float:
        return math.inf

    def _drawn(self, candidate: CandidatePartition) -> Estimate:
        rng = random.Random(f"{self.seed} {candidate.spec.name} {candidate.sub_graph.inside}")
        if rng.random() < self.invalid and candidate.spec.name != "reference":
            return Estimate(Cost.INVALID, error=MeasureError.CRASH, message="it crashed")
        calls = sum(map(must_be_lowered, candidate.sub_graph.exprs))
        seconds = calls**0.7 * rng.uniform(0.5, 2)
        return Estimate(Cost.value(seconds), seconds, seconds)


def parts(partitions: Sequence[Partition]) -> list[tuple[str, str]]:
    """Toolchain and operators of each."""
    return [(each.toolchain, each.label) for each in partitions]


def parts_of(cover: CoverRecord) -> list[tuple[str, str]]:
    return parts(cover.partitions)
