"""Partition rules by name, for the option partition_rule of a target (seed collage_rfc, phase 1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from intarsia.collage.candidates.candidate_partition import PartitionRule
from intarsia.collage.rules.rule_limits import RuleLimits
from intarsia.collage.rules.typical_rules import (
    fuse_ops_rule,
    fused_operators_rule,
    graph_style_rule,
    just_patterns_rule,
    library_rule,
    operator_predicate_rule,
    pattern_table_rule,
)
from intarsia.op.operator_predicate import operator_predicate
from intarsia.op.pattern_table import pattern_table
from intarsia.support.errors import UsageError
from intarsia.support.registry import Registry
from intarsia.target import Target

RuleConstructor: TypeAlias = Callable[[Target, RuleLimits], PartitionRule]
"""Makes the rule for a target; raises UsageError for a target that it is not meant for."""

_RULES: Registry[RuleConstructor] = Registry("partition rule", group="intarsia.partition_rules")

register_partition_rule: Callable[[str, RuleConstructor], RuleConstructor] = _RULES.register
"""Make a rule usable as "-partition_rule=NAME"; packages may use the entry point group instead.

Raises:
    UsageError: The name is taken.
"""

holding_partition_rule = _RULES.holding
"""Register a rule for the duration of a `with` block, even if the name is taken (tests, experiments)."""


def registered_rule(name: str, target: Target, limits: RuleLimits) -> PartitionRule:
    """The rule of a name for a target.

    Raises:
        UsageError: No rule has that name (the nearest are listed), or it is not for such a target.
    """
    try:
        return _RULES[name](target, limits)
    except UsageError as error:
        error.add_note(f'in target "{target}", option -partition_rule')
        raise


def _toolchain(target: Target) -> str:
    if target.toolchain is None:
        raise UsageError("this partition rule needs a toolchain, expected a target with -toolchain=NAME")
    return target.toolchain


register_partition_rule(
    "operator_predicate",
    lambda target, limits: operator_predicate_rule(operator_predicate(_toolchain(target)), limits),
)
register_partition_rule(
    "pattern_table",
    lambda target, limits: pattern_table_rule(_toolchain(target), pattern_table(_toolchain(target)), limits),
)
register_partition_rule(
    "library",
    lambda target, limits: library_rule(_toolchain(target), pattern_table(_toolchain(target)), limits),
)
register_partition_rule("fuse_ops", lambda _, limits: fuse_ops_rule(limits))
register_partition_rule(
    "just_patterns",
    lambda target, limits: just_patterns_rule(pattern_table(_toolchain(target)), limits),
)
register_partition_rule(
    "fused_operators",
    lambda target, limits: fused_operators_rule(operator_predicate(_toolchain(target)), limits),
)
register_partition_rule(
    "graph_style",
    lambda target, limits: graph_style_rule(operator_predicate(_toolchain(target)), limits),
)
