"""The substitutions of a program and the programs after them, each computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Self

from intarsia.ir import IRModule, structural_digest
from intarsia.tune.extension import failure_reason
from intarsia.tune.passes.rewrite_estimate import ProgramEstimate
from intarsia.tune.substitution import (
    Dataflow,
    Substitution,
    SubstitutionRule,
    apply_replacement,
    find_substitutions,
)


@dataclass(frozen=True, slots=True)
class RewrittenOnce:
    """A program after one substitution.

    Attributes:
        substitution: The substitution.
        mod: The program after it; the program before it if it has failed.
        digest: Digest of that program; "" if it has failed.
        failure: Why the substitution could not be made; "" if it was.
    """

    substitution: Substitution
    mod: IRModule
    digest: str
    failure: str = ""


@dataclass(eq=False, slots=True)
class Expansion:
    """All programs that one substitution makes of a program.

    Attributes:
        flow: The dataflow of the program.
        substitutions: The substitutions, in the order in which they are tried.
    """

    flow: Dataflow
    substitutions: tuple[Substitution, ...]
    _rewritten: dict[int, RewrittenOnce] = field(default_factory=dict)

    @classmethod
    def of(
        cls, mod: IRModule, rules: Sequence[SubstitutionRule], is_estimated: bool, most_estimated: float = inf
    ) -> Self:
        """Find the substitutions of a program.

        Args:
            mod: The program.
            rules: Rules to match.
            is_estimated: Whether substitutions that are estimated to cost least come first; else the order is
                that of the rules.
            most_estimated: Largest allowed ratio of the estimated costs of the new and the old program.
        """
        flow = Dataflow.of(mod)
        substitutions = list(find_substitutions(flow, rules))
        if is_estimated or isfinite(most_estimated):
            estimate = ProgramEstimate.of(flow)
            costs = {substitution: estimate.cost_after(substitution) for substitution in substitutions}
            limit = most_estimated * estimate.total
            substitutions = [substitution for substitution in substitutions if costs[substitution] <= limit]
            if is_estimated:
                substitutions.sort(key=lambda substitution: costs[substitution])
        return cls(flow, tuple(substitutions))

    def rewrite(self, number: int) -> RewrittenOnce:
        """Return the program after a substitution, by its index in `substitutions`."""
        if number not in self._rewritten:
            self._rewritten[number] = self._apply(self.substitutions[number])
        return self._rewritten[number]

    def _apply(self, substitution: Substitution) -> RewrittenOnce:
        try:
            mod = apply_replacement(self.flow, substitution.new, substitution.positions)
        except Exception as error:  # rules are anyone's code, and what they build may not fit the program
            return RewrittenOnce(substitution, self.flow.mod, "", failure_reason(error))
        return RewrittenOnce(substitution, mod, structural_digest(mod))
