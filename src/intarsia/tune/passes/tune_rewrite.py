"""Graph substitution by measuring."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite
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

    Each step is an instruction whose choices are the substitutions that were evaluated together.

    Raises:
        UsageError: `alpha` or `most_estimated` is below 1, there is no such rule, or one of the numbers is
            below 1.

    Attributes:
        rules: Names of the rules; all if empty.
        alpha: How much worse than the best a program may be, to go on from.
        max_expansions: How many times a program is taken from the queue at most.
        width: How many substitutions are evaluated each time; the program comes back for the others.
        is_estimated: Whether substitutions that promise much by their number of operations come first.
        most_estimated: Substitutions after which the program costs more than so many times as much, by its
            number of operations, are not tried: `enlarge_kernel` alone makes 9 times the operations.
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
        """The cheapest way to go on from a trace that the search has found."""
        search = _Search(self, ctx, time.monotonic())
        best = search.evaluate([trace])[0]
        seen = {
            ctx.expansions.get_or_make(trace.out_mod, "typed digest", partial(_typed_digest, trace.out_mod))
        }
        frontier = Frontier()
        frontier.add(RewrittenProgram(trace, best.perf if best.perf is not None else inf))
        for _ in range(self.max_expansions):
            room = min(self.width, search.left)
            if not frontier or room < 1:
                break
            program = frontier.pop()
            if search.is_hopeless(program.cost, best):
                break  # and so are all behind it
            found = program.take_successors(search.expand, seen, room)
            begun = list(program.successor_traces(found, self.info.name)) if found else []
            for rewritten, ended in zip(begun, search.evaluate(begun), strict=True):
                cost = inf if ended.perf is None else ended.perf
                best = min(best, ended, key=_cost)
                if isfinite(cost):
                    frontier.add(RewrittenProgram(rewritten, cost))
            if program.is_open:
                frontier.add(program)
        return best


def _typed_digest(mod: IRModule) -> str:
    return structural_digest(infer_types(mod))


def _cost(trace: Trace) -> float:
    return inf if trace.perf is None else trace.perf


@dataclass(slots=True)
class _Search:
    """The limits of a search, and how candidates are evaluated.

    Attributes:
        owner: The pass.
        ctx: What it runs under.
        begun: When, in seconds.
        tried: How many candidates.
    """

    owner: TuneRewrite
    ctx: TuningContext
    begun: float
    tried: int = 0

    @property
    def left(self) -> int:
        """How many candidates may still be tried, up to the pass' width."""
        limits = self.owner.limits
        is_over = time.monotonic() - self.begun >= limits.seconds or limits.should_stop()
        return 0 if is_over else int(min(limits.trials - self.tried, self.owner.width))

    def is_hopeless(self, cost: float, best: Trace) -> bool:
        """Whether nothing is expected behind a program of that cost: TASO's threshold.

        The best itself is always gone on from, also if it has failed to run.
        """
        return cost > _cost(best) and cost >= self.owner.alpha * _cost(best)

    def expand(self, mod: IRModule) -> Expansion:
        """What one substitution makes of a program: looked for once in all searches of a context."""
        owner = self.owner
        options = (owner.is_estimated, owner.most_estimated)
        what = ("expansion", owner.rules, *options)
        return self.ctx.expansions.get_or_make(
            mod, what, lambda: Expansion.of(mod, owner.chosen_rules, *options)
        )

    def evaluate(self, traces: list[Trace]) -> list[Trace]:
        """The traces behind the passes that candidates go through, with what they cost."""
        if not traces:
            return []
        self.tried += len(traces)
        passes = self.owner.eval_passes
        ended = consider_eval_passes(traces, self.ctx, passes) if passes else [one.copy() for one in traces]
        evaluate(ended, self.ctx)
        return ended
