"""What substitutions make of a program: looked for once, and made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Self

from intarsia.ir import IRModule, structural_digest
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
        substitution: What was substituted.
        mod: The program.
        digest: Of the program.
    """

    substitution: Substitution
    mod: IRModule
    digest: str


@dataclass(eq=False, slots=True)
class Expansion:
    """All that one substitution makes of a program.

    Attributes:
        flow: The dataflow of the program.
        substitutions: In the order in which they are to be tried.
    """

    flow: Dataflow
    substitutions: tuple[Substitution, ...]
    _made: dict[int, RewrittenOnce] = field(default_factory=dict)

    @classmethod
    def of(
        cls, mod: IRModule, rules: Sequence[SubstitutionRule], is_estimated: bool, most_estimated: float = inf
    ) -> Self:
        """What can be substituted in a program.

        Args:
            mod: The program.
            rules: What may be substituted.
            is_estimated: Whether substitutions that are estimated to cost least come first; else the order is
                that of the rules.
            most_estimated: How many times the estimated cost of the program that of a new one may be.
        """
        flow = Dataflow.of(mod)
        found = list(find_substitutions(flow, rules))
        if is_estimated or isfinite(most_estimated):
            estimate = ProgramEstimate.of(flow)
            costs = {each: estimate.cost_after(each) for each in found}
            limit = most_estimated * estimate.total
            found = [each for each in found if costs[each] <= limit]
            if is_estimated:
                found.sort(key=lambda each: costs[each])
        return cls(flow, tuple(found))

    def rewrite(self, number: int) -> RewrittenOnce:
        """The program after a substitution."""
        if number not in self._made:
            one = self.substitutions[number]
            mod = apply_replacement(self.flow, one.new, one.place)
            self._made[number] = RewrittenOnce(one, mod, structural_digest(mod))
        return self._made[number]
