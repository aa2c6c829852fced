"""Phase 1: from targets to partition specs (seed collage_rfc)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, cast

from intarsia.collage.candidates.candidate_partition import PartitionRule, PartitionSpec
from intarsia.collage.rules.registered_rule import registered_rule
from intarsia.collage.rules.rule_limits import RuleLimits
from intarsia.collage.rules.segment import SegmentLimits
from intarsia.collage.rules.typical_rules import (
    FUSE_OPS_COMBINERS,
    JOIN_ANYTHING,
    fused_operators_rule,
    graph_style_rule,
    groups_rule,
    host_rule,
    pattern_table_rule,
    reference_rule,
    single_operators_rule,
)
from intarsia.collage.rules.union import UnionPartitionRule
from intarsia.op.operator_predicate import OperatorPredicate, operator_predicate
from intarsia.op.pattern_table import HasPatterns, pattern_table
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE, REFERENCE_TARGET
from intarsia.toolchain.protocol import FusionStyle, Toolchain

NATIVE: Final = "native"
"""The toolchain that a target without one stands for, once it is registered."""
HOST: Final = "host"
"""The name of the spec of what is left in place."""

_COMBINERS: Final = MappingProxyType(
    {FusionStyle.NONE: (), FusionStyle.OPERATOR: FUSE_OPS_COMBINERS, FusionStyle.GRAPH: JOIN_ANYTHING}
)


@dataclass(frozen=True, slots=True)
class GatherOptions:
    """How rules are made for targets.

    Attributes:
        limits: Limits of candidates joined from single operators.
        segments: Limits of segments, for toolchains that fuse graphs.
        styles: Fusion styles by toolchain, in place of what the toolchain says of itself.
    """

    limits: RuleLimits = RuleLimits()  # noqa: RUF009 - frozen
    segments: SegmentLimits = SegmentLimits()  # noqa: RUF009 - frozen
    styles: Mapping[str, FusionStyle] = field(default_factory=lambda: MappingProxyType({}))


def gather_partition_specs(
    targets: Iterable[Target], options: GatherOptions | None = None
) -> tuple[PartitionSpec, ...]:
    """A spec for each target that can run something, the reference's, and the host's last.

    * The option partition_rule of a target names its rule; it is not passed on to the toolchain.
    * Otherwise a toolchain with a pattern table offers its groups, alone (fusion style NONE), fused as
      FuseOps would (OPERATOR), or joined in any way (GRAPH).
    * Otherwise a toolchain offers what its operator predicate accepts (its class's, if it was registered in
      code): single operators, fused ones besides, or large regions besides; and the groups of its class's
      pattern table, such as attention, which no cut of the graph separates.
    * A target without toolchain is the native compiler's, if there is one; else it is a device, which says
      where values may live (`collect_candidates`) and runs nothing by itself.
    * The reference toolchain takes every operator, one by one, with the target's options if it is among the
      targets.

    Nothing is compiled, and no engine is loaded: a toolchain may turn out not to be usable.

    Raises:
        UsageError: A toolchain or rule that is not registered, or the same target twice.
    """
    options = options or GatherOptions()
    wanted = list(targets)
    _refuse_repetition(wanted)
    specs = [spec for target in wanted for spec in _of_target(target, wanted, options)]
    if not any(spec.target.toolchain == REFERENCE for spec in specs):
        specs.append(PartitionSpec(REFERENCE, REFERENCE_TARGET, reference_rule()))
    specs.sort(key=lambda spec: spec.target.toolchain == REFERENCE)
    kind = wanted[0].kind if all(target.kind != "cpu" for target in wanted) and wanted else "cpu"
    return (*specs, PartitionSpec(HOST, Target(kind), host_rule()))


def _of_target(target: Target, wanted: list[Target], options: GatherOptions) -> list[PartitionSpec]:
    name = target.option("partition_rule")
    plain = target.with_options(partition_rule=None)
    if target.toolchain is None and name is None:
        if NATIVE not in TOOLCHAINS:
            return []
        plain = Target(plain.kind, NATIVE, plain.options)
    toolchain = plain.toolchain or NATIVE
    is_only = sum((other.toolchain or NATIVE) == toolchain for other in wanted) == 1
    if name is not None:
        rule = registered_rule(str(name), plain, options.limits)
    elif toolchain == REFERENCE:
        rule = reference_rule()
    else:
        rule = _rule(toolchain, options)
    return [PartitionSpec(toolchain if is_only else str(target), plain, rule)]


def _rule(toolchain: str, options: GatherOptions) -> PartitionRule:
    """The rule for a toolchain by its pattern table, predicate and fusion style."""
    style = _style(toolchain, options)
    try:
        table = pattern_table(toolchain)
        if table:
            return pattern_table_rule(toolchain, table, options.limits, _COMBINERS[style])
        predicate = operator_predicate(toolchain)
    except UsageError:  # no package announces it
        if toolchain not in TOOLCHAINS:
            raise
        predicate = _class_of(toolchain)().supports
    rule = _predicate_rule(style, predicate, options)
    instance = _class_of(toolchain)() if toolchain in TOOLCHAINS else None
    groups = instance.patterns() if isinstance(instance, HasPatterns) else ()
    return UnionPartitionRule((rule, groups_rule(toolchain, groups))) if groups else rule


def _predicate_rule(
    style: FusionStyle, predicate: OperatorPredicate, options: GatherOptions
) -> PartitionRule:
    """The rule for a toolchain that says of single operators whether it runs them."""
    match style:
        case FusionStyle.GRAPH:
            return graph_style_rule(predicate, options.limits, options.segments)
        case FusionStyle.OPERATOR:
            return fused_operators_rule(predicate, options.limits)
        case FusionStyle.NONE:
            return single_operators_rule(predicate)


def _style(toolchain: str, options: GatherOptions) -> FusionStyle:
    """What the options say, or the toolchain's class; GRAPH for one that has but a table or a predicate."""
    if toolchain in options.styles:
        return options.styles[toolchain]
    return _class_of(toolchain).fusion_style if toolchain in TOOLCHAINS else FusionStyle.GRAPH


def _class_of(toolchain: str) -> type[Toolchain]:
    return cast("type[Toolchain]", TOOLCHAINS[toolchain])


def _refuse_repetition(targets: list[Target]) -> None:
    for position, target in enumerate(targets):
        if target in targets[:position]:
            raise UsageError(f'target "{target}" is given twice; expected once')
