"""A best-first search over rewrites, as in TASO (seed relax_pass_infra)."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from intarsia.ir import structural_digest
from intarsia.tune import Choice, Instruction, Trace, TuningContext, TuningPass, evaluate, generate_candidates

REWRITES = ("SimplifyExpr", "CombineParallelConv2D", "CombineParallelMatMul", "FoldConstant", "FoldScaleAxis")


@dataclass(frozen=True)
class Taso(TuningPass):
    """Expand the cheapest program first, and others up to `alpha` times the best cost."""

    alpha: float = 1.05
    expansions: int = 10

    def tune(self, trace: Trace, ctx: TuningContext) -> Trace:
        """Return the cheapest program that was reached."""
        evaluate([trace], ctx)
        best, seen, number = trace, {structural_digest(trace.out_mod)}, 0
        queue = [(trace.perf or 0.0, number, trace)]
        for _ in range(self.expansions):
            if not queue or queue[0][0] >= self.alpha * (best.perf or 0.0):
                break
            _, _, current = heappop(queue)
            rewrite = Instruction("rewrite", {name: Choice(name) for name in REWRITES})
            candidates = generate_candidates(rewrite, current, ctx, self.eval_passes)
            new = {structural_digest(candidate.out_mod): candidate for candidate in candidates}
            new = {digest: candidate for digest, candidate in new.items() if digest not in seen}
            evaluate(list(new.values()), ctx)
            seen |= new.keys()
            for candidate in new.values():
                number += 1
                heappush(queue, (candidate.perf or 0.0, number, candidate))
                best = min(best, candidate, key=lambda item: item.perf or 0.0)
        return best
