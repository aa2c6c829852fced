"""Choose a toolchain for each call by measuring the call alone (seed relax_pass_infra, Collage).

The real search, over whole covers of the graph and with the costs of boundaries, is the pass
`CollagePartition`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from intarsia.ir import Call, Expr, IRModule, Op, post_order, rewrite, with_fields, with_module_fields
from intarsia.ir.pattern import is_op
from intarsia.target import Target, VirtualDevice
from intarsia.transform import Sequential, get_pass
from intarsia.tune import (
    Choice,
    Instruction,
    Trace,
    TuningContext,
    TuningPass,
    evaluate,
    extract_subgraph,
    generate_candidates,
    select_best_candidate,
    transformation,
)


@transformation
def placed(mod: IRModule, targets: dict[str, str]) -> IRModule:
    """Assign each call, by its number, to a target; neighbours with the same target become one region."""
    numbers = count()

    def rule(expr: Expr) -> Expr:
        text = targets.get(str(next(numbers))) if isinstance(expr, Call) else None
        target = None if text is None else Target(text)
        if target is None:
            return expr
        return with_fields(expr, virtual_device=VirtualDevice(target.device_type, 0, target))

    main = with_fields(mod["main"], body=rewrite(mod["main"].body, rule))
    regions = Sequential([get_pass("MergeCompilerRegions"), get_pass("PartitionGraph")])
    return regions(with_module_fields(mod, functions={**mod.functions, mod.global_var("main"): main}))


@dataclass(frozen=True)
class Collage(TuningPass):
    """Try every target for each call; equal calls share their measurements."""

    targets: tuple[str, ...] = ("cpu -toolchain=onnxruntime", "cpu -toolchain=openvino")

    def tune(self, trace: Trace, ctx: TuningContext) -> Trace:
        """Return the program with each call on the target that was fastest for it alone."""
        mod = trace.out_mod
        calls: list[Expr] = [expr for expr in post_order(mod["main"].body) if isinstance(expr, Call)]
        names = dict.fromkeys(
            call.op.name for call in calls if isinstance(call, Call) and isinstance(call.op, Op)
        )
        backend = Instruction(
            "backend", {text: Choice("PartitionWhole", {"target": text}) for text in self.targets}
        )
        chosen: dict[str, str] = {}
        for name in names:
            for match, part in extract_subgraph(mod, is_op(name)(...)):
                candidates = generate_candidates(backend, Trace(part), ctx, self.eval_passes)
                evaluate(candidates, ctx)
                chosen[str(calls.index(match.root))] = select_best_candidate(candidates).steps[0].decision
        trace.add(
            Instruction("Collage", {"placement": Choice(placed, {"targets": chosen})}), "placement", ctx
        )
        evaluate([trace], ctx)
        return trace
