"""A search with a loop of its own: rewrite while it pays, or nearly so (seed relax_pass_infra, TASO)."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from intarsia.ir import structural_digest
from intarsia.tune import Choice, Instruction, Trace, TuningContext, TuningPass, evaluate, generate_candidates

REWRITES = ("SimplifyExpr", "CombineParallelConv2D", "CombineParallelMatMul", "FoldConstant", "FoldScaleAxis")


@dataclass(frozen=True)
class Taso(TuningPass):
    """Expands the cheapest program first; those up to `alpha` times the best cost are expanded too."""

    alpha: float = 1.05
    expansions: int = 10

    def tune(self, trace: Trace, ctx: TuningContext) -> Trace:
        """The cheapest program that rewrites lead to."""
        evaluate([trace], ctx)
        best, seen, number = trace, {structural_digest(trace.out_mod)}, 0
        queue = [(trace.perf or 0.0, number, trace)]
        for _ in range(self.expansions):
            if not queue or queue[0][0] >= self.alpha * (best.perf or 0.0):
                break
            _, _, current = heappop(queue)
            rewrite = Instruction("rewrite", {name: Choice(name) for name in REWRITES})
            candidates = generate_candidates(rewrite, current, ctx, self.eval_passes)
            new = {structural_digest(each.out_mod): each for each in candidates}
            new = {digest: each for digest, each in new.items() if digest not in seen}
            evaluate(list(new.values()), ctx)
            seen |= new.keys()
            for each in new.values():
                number += 1
                heappush(queue, (each.perf or 0.0, number, each))
                best = min(best, each, key=lambda one: one.perf or 0.0)
        return best
