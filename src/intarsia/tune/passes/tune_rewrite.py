"""Graph substitution guided by measured costs (TASO)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Final

from intarsia.ir import IRModule, structural_digest
from intarsia.op import infer_types
from intarsia.support.errors import UsageError
from intarsia.transform import register_pass
from intarsia.tune.candidates import consider_eval_passes, evaluate
from intarsia.tune.passes.rewrite_expansion import Expansion
from intarsia.tune.passes.rewrite_frontier import Frontier, RewrittenProgram
from intarsia.tune.substitution import RULES, SubstitutionRule
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

_HELP: Final = {"alpha": "1 goes on from the best only", "most_estimated": "inf tries all substitutions"}


@register_pass
@dataclass(frozen=True)
class TuneRewrite(TuningPass):
    """Substitutes parts of the program by others that compute the same, as long as that pays (TASO).

    A best-first search (TASO, algorithm 2): the cheapest program known is taken from a queue, every rule is
    tried at every place of it, and what comes of that is evaluated and goes to the queue. The search ends at
    a program that costs `alpha` times the best or more: with an `alpha` above 1, steps that cost at first are
    taken for what they make possible. Programs that were seen are not evaluated again. The program itself is
    the first candidate, so that the result is never worse.

    Each step is an instruction; its choices are the substitutions that were evaluated together.

    Raises:
        UsageError: `alpha` or `most_estimated` is below 1, there is no such rule, or one of the numbers is
            below 1.

    Attributes:
        rules: Names of the rules; all if empty.
        alpha: Largest ratio of a program's cost to the best cost at which the program is still expanded.
        max_expansions: Maximum number of programs taken from the queue.
        width: Number of substitutions evaluated per expansion; the program is queued again for the others.
        is_estimated: Whether substitutions with the lowest estimated cost come first.
        most_estimated: Largest ratio of estimated costs after and before a substitution that is tried:
            `enlarge_kernel` alone multiplies the operations by 9.
    """

    rules: tuple[str, ...] = ()
    alpha: float = 1.05
    max_expansions: int = 100
    width: int = 8
    is_estimated: bool = True
    most_estimated: float = 2.0

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        object.__setattr__(self, "rules", tuple(self.rules))
        for name, limit in (("alpha", self.alpha), ("most_estimated", self.most_estimated)):
            if not limit >= 1:
                raise UsageError(f"{name} is {limit}, expected at least 1", help=_HELP[name])
        if self.max_expansions < 1 or self.width < 1:
            raise UsageError(
                f"a search of {self.max_expansions} expansions with {self.width} candidates tries nothing"
            )
        for name in self.rules:
            RULES[name]

    @property
    def chosen_rules(self) -> tuple[SubstitutionRule, ...]:
        """The rules."""
        return tuple(RULES[name] for name in self.rules or RULES)

    def tune(self, trace: Trace, ctx: TuningContext) -> Trace:
        """Search the cheapest extension of a trace by substitutions."""
        search = _Search(self, ctx, time.monotonic())
        best = search.evaluate([trace])[0]
        seen = {
            ctx.expansions.get_or_make(trace.out_mod, "typed digest", partial(_typed_digest, trace.out_mod))
        }
        frontier = Frontier()
        frontier.add(RewrittenProgram(trace, best.cost))
        for _ in range(self.max_expansions):
            room = min(self.width, search.left)
            if not frontier or room < 1:
                break
            program = frontier.pop()
            if search.is_hopeless(program.cost, best):
                break  # and so are all behind it
            successors = program.take_successors(search.expand, seen, room)
            begun = list(program.successor_traces(successors, self.info.name)) if successors else []
            for rewritten, ended in zip(begun, search.evaluate(begun), strict=True):
                best = min(best, ended, key=lambda candidate: candidate.cost)
                if isfinite(ended.cost):
                    frontier.add(RewrittenProgram(rewritten, ended.cost))
            if program.is_open:
                frontier.add(program)
        return best


def _typed_digest(mod: IRModule) -> str:
    return structural_digest(infer_types(mod))


@dataclass(slots=True)
class _Search:
    """The limits of a search, and how candidates are evaluated.

    Attributes:
        owner: The pass.
        ctx: Context of the pass.
        begun: Time of the start, in seconds of `time.monotonic`.
        tried: Number of candidates so far.
    """

    owner: TuneRewrite
    ctx: TuningContext
    begun: float
    tried: int = 0

    @property
    def left(self) -> int:
        """Number of candidates that may still be tried, at most the pass's width."""
        limits = self.owner.limits
        is_late = time.monotonic() - self.begun >= limits.seconds
        return (
            0
            if is_late or self.ctx.control.is_over
            else int(min(limits.trials - self.tried, self.owner.width))
        )

    def is_hopeless(self, cost: float, best: Trace) -> bool:
        """Whether a program is too expensive to expand: TASO's threshold.

        The best program itself is always expanded, even if it failed to run.
        """
        return cost > best.cost and cost >= self.owner.alpha * best.cost

    def expand(self, mod: IRModule) -> Expansion:
        """Return the expansion of a program, computed once for all searches of a context."""
        owner = self.owner
        options = (owner.is_estimated, owner.most_estimated)
        what = ("expansion", owner.rules, *options)
        return self.ctx.expansions.get_or_make(
            mod, what, lambda: Expansion.of(mod, owner.chosen_rules, *options)
        )

    def evaluate(self, traces: list[Trace]) -> list[Trace]:
        """Run `eval_passes` on traces, and evaluate the results."""
        if not traces:
            return []
        self.tried += len(traces)
        passes = self.owner.eval_passes
        ended = (
            consider_eval_passes(traces, self.ctx, passes) if passes else [trace.copy() for trace in traces]
        )
        evaluate(ended, self.ctx)
        return ended
