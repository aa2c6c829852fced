"""Rules put together in the typical ways (seed collage_rfc, PartitionRule), as named constructors.

operator_predicate_rule   classic BYOC by operator predicates
pattern_table_rule        classic BYOC by a pattern table
groups_rule               the groups of a table beside what a predicate allows
library_rule              consider this library for these sub-expressions
fuse_ops_rule             classic FuseOps
just_patterns_rule        candidates of a table of patterns, and nothing else

and those of DESIGN section 7:

graph_style_rule          large regions for engines that fuse graphs on their own
fused_operators_rule      as FuseOps, of the operators that an engine supports
single_operators_rule     the operators that an engine supports, one by one
reference_rule, host_rule candidates for what no other rule covers
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from intarsia.collage.candidates.candidate_partition import PartitionRule
from intarsia.collage.rules.all_simple import AllSimpleCombinerRule
from intarsia.collage.rules.by_kind import ByKindSimpleCombinerRule
from intarsia.collage.rules.combine import CombinePartitionRule
from intarsia.collage.rules.combiner_rule import CombinerRule
from intarsia.collage.rules.composite import CompositePartitionRule
from intarsia.collage.rules.df_pattern import DFPatternPartitionRule
from intarsia.collage.rules.each_call import EachCallPartitionRule
from intarsia.collage.rules.greedy import GreedyPartitionRule
from intarsia.collage.rules.host import HostPartitionRule
from intarsia.collage.rules.in_place import InPlacePartitionRule
from intarsia.collage.rules.join_anything import JoinAnythingCombinerRule
from intarsia.collage.rules.only_valid import OnlyValidPartitionRule
from intarsia.collage.rules.op_call_by_kind import OpCallByKindPartitionRule
from intarsia.collage.rules.op_predicate import OpPredicatePartitionRule
from intarsia.collage.rules.primitive import PrimitivePartitionRule
from intarsia.collage.rules.rule_limits import RuleLimits
from intarsia.collage.rules.segment import SegmentLimits, SegmentPartitionRule
from intarsia.collage.rules.tuple_arg import TupleArgCombinerRule
from intarsia.collage.rules.tuple_proj import TupleProjCombinerRule
from intarsia.collage.rules.union import UnionPartitionRule
from intarsia.collage.sub_graph.sub_graph_config import ANY_SHAPE
from intarsia.op import OpPatternKind
from intarsia.op.operator_predicate import OperatorPredicate
from intarsia.op.pattern_table import CompositePattern, composite_name

FUSE_OPS_COMBINERS: Final[tuple[CombinerRule, ...]] = (
    AllSimpleCombinerRule(
        (
            ByKindSimpleCombinerRule(OpPatternKind.OUT_ELEMWISE_FUSABLE, OpPatternKind.BROADCAST),
            ByKindSimpleCombinerRule(OpPatternKind.BROADCAST, OpPatternKind.COMM_REDUCE),
            ByKindSimpleCombinerRule(OpPatternKind.INJECTIVE, OpPatternKind.INJECTIVE),
        )
    ),
    TupleArgCombinerRule(),
    TupleProjCombinerRule(),
)
"""What FuseOps does, as combiner rules: the default ones of the seed."""

JOIN_ANYTHING: Final[tuple[CombinerRule, ...]] = (AllSimpleCombinerRule((JoinAnythingCombinerRule(),)),)
"""Whatever touches."""

_DEFAULT: Final = RuleLimits()


def operator_predicate_rule(predicate: OperatorPredicate, limits: RuleLimits = _DEFAULT) -> PartitionRule:
    """Whatever a toolchain supports, joined in any way; a partition is a connected region of it.

    What AnnotateTarget, MergeCompilerRegions and PartitionGraph do, but with all regions up to the limits
    instead of the largest.
    """
    return _partition(OpPredicatePartitionRule(predicate), JOIN_ANYTHING, limits)


def pattern_table_rule(
    toolchain: str,
    table: Iterable[CompositePattern],
    limits: RuleLimits = _DEFAULT,
    combiners: tuple[CombinerRule, ...] = JOIN_ANYTHING,
) -> PartitionRule:
    """The groups of a pattern table as Composite functions, joined in any way.

    What MergeComposite, AnnotateTarget and PartitionGraph do, but with all matches, which may overlap.

    Args:
        toolchain: The name that the attribute Composite begins with.
        table: Its pattern table.
        limits: Limits of size and number.
        combiners: Other ways to join; none for one group in each partition.
    """
    return _partition(UnionPartitionRule(_composites(toolchain, table)), combiners, limits)


def groups_rule(toolchain: str, table: Iterable[CompositePattern]) -> PartitionRule:
    """The groups of a pattern table of any shape, each a partition, for a toolchain that has a predicate too.

    Args:
        toolchain: The name that the attribute Composite begins with.
        table: Its pattern table.
    """
    groups = UnionPartitionRule(_composites(toolchain, table))
    return PrimitivePartitionRule(OnlyValidPartitionRule(groups, ANY_SHAPE))


def library_rule(
    library: str, table: Iterable[CompositePattern], limits: RuleLimits = _DEFAULT
) -> PartitionRule:
    """Fusion as FuseOps does it, in which some groups may be calls of a library.

    The groups are Composite functions; there is no Primitive function around, so that they are not cut off
    from what the native compiler makes of their neighbours.

    Args:
        library: The name that the attribute Composite begins with.
        table: Table of the patterns that the library implements.
        limits: Limits of size and number.
    """
    base = UnionPartitionRule((OpCallByKindPartitionRule(), *_composites(library, table)))
    return _valid(base, FUSE_OPS_COMBINERS, limits)


def fuse_ops_rule(limits: RuleLimits = _DEFAULT) -> PartitionRule:
    """All kernels that FuseOps could make, not only the largest."""
    return _partition(OpCallByKindPartitionRule(), FUSE_OPS_COMBINERS, limits)


def just_patterns_rule(table: Iterable[CompositePattern], limits: RuleLimits = _DEFAULT) -> PartitionRule:
    """Exactly the groups of a table, each a partition; their names are for people only."""
    subs = tuple(DFPatternPartitionRule(row.name, row.pattern, row.check) for row in table)
    return PrimitivePartitionRule(OnlyValidPartitionRule(UnionPartitionRule(subs), limits.shape))


def fused_operators_rule(predicate: OperatorPredicate, limits: RuleLimits = _DEFAULT) -> PartitionRule:
    """The operators that a toolchain supports, fused as FuseOps would."""
    return _partition(OpPredicatePartitionRule(predicate), FUSE_OPS_COMBINERS, limits)


def single_operators_rule(predicate: OperatorPredicate) -> PartitionRule:
    """The operators that a toolchain supports, one by one."""
    return PrimitivePartitionRule(OnlyValidPartitionRule(OpPredicatePartitionRule(predicate), ANY_SHAPE))


def graph_style_rule(
    predicate: OperatorPredicate,
    limits: RuleLimits = _DEFAULT,
    segments: SegmentLimits = SegmentLimits(),  # noqa: B008 - frozen
) -> PartitionRule:
    """Single operators, small fused groups, segments of any length, and the greedy regions.

    In place of joining anything, which there are exponentially many ways to do. Segments and regions may have
    several results.
    """
    small = _valid(OpPredicatePartitionRule(predicate), FUSE_OPS_COMBINERS, limits)
    large = UnionPartitionRule((SegmentPartitionRule(predicate, segments), GreedyPartitionRule(predicate)))
    return PrimitivePartitionRule(UnionPartitionRule((small, OnlyValidPartitionRule(large, ANY_SHAPE))))


def reference_rule() -> PartitionRule:
    """Every call by itself, with what belongs to it."""
    return PrimitivePartitionRule(OnlyValidPartitionRule(EachCallPartitionRule(), ANY_SHAPE))


def host_rule() -> PartitionRule:
    """What needs no toolchain, and what cannot be handed to one."""
    return UnionPartitionRule((HostPartitionRule(), InPlacePartitionRule()))


def _composites(toolchain: str, table: Iterable[CompositePattern]) -> tuple[PartitionRule, ...]:
    return tuple(
        CompositePartitionRule(
            composite_name(toolchain, row.name), DFPatternPartitionRule(row.name, row.pattern, row.check)
        )
        for row in table
    )


def _valid(
    base: PartitionRule, combiners: tuple[CombinerRule, ...], limits: RuleLimits
) -> OnlyValidPartitionRule:
    combine = CombinePartitionRule(base, combiners, limits.shape.max_depth, limits.max_joined, limits.on_note)
    return OnlyValidPartitionRule(combine, limits.shape)


def _partition(base: PartitionRule, combiners: tuple[CombinerRule, ...], limits: RuleLimits) -> PartitionRule:
    return PrimitivePartitionRule(_valid(base, combiners, limits))
