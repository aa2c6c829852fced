"""A substitution as a transformation that choices name."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.tune.choice import Choice
from intarsia.tune.substitution.application import Substitution, apply_replacement, replacements
from intarsia.tune.substitution.dataflow import Dataflow
from intarsia.tune.substitution.matching import match_at
from intarsia.tune.substitution.rule import RULES
from intarsia.tune.transformations import transformation


@transformation
def substitute(mod: IRModule, rule: str, place: Sequence[int]) -> IRModule:
    """Apply one rule at one place.

    Args:
        mod: The program; types that are missing are inferred.
        rule: Name of the rule.
        place: The number of each root among the compound expressions of @main in evaluation order.

    Raises:
        UsageError: There is no such rule, or it does not match there.
    """
    flow = Dataflow.of(mod)
    match = match_at(RULES[rule], tuple(place), flow)
    new = None if match is None else replacements(match)
    if match is None or new is None:
        raise UsageError(
            f"rule {rule} does not match at {', '.join(map(str, place))}",
            help="find_substitutions(Dataflow.of(mod), rules) lists where rules do",
        )
    return apply_replacement(flow, new, match.positions)


def choice_of(what: Substitution) -> Choice:
    """The choice that applies a substitution."""
    return Choice(substitute, {"rule": what.rule, "place": list(what.positions)})
