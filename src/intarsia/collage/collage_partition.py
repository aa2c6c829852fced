"""The pass that gives each sub-graph to the toolchain that runs it fastest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.transform import ModulePass, PassContext, register_pass

if TYPE_CHECKING:
    from intarsia.collage.costs.boundary_costs import BoundaryCosts
    from intarsia.collage.costs.cost_estimator import CostEstimator

MEASURED: Final = "measured"
"""The estimator that measures on this machine; the others are those of `COST_ESTIMATORS`."""


@register_pass
@dataclass(frozen=True)
class CollagePartition(ModulePass, opt_level=0, required=("InferType",)):
    """Finds the cheapest partition by estimated costs, and makes its sub-graphs functions (seed collage_rfc).

    Of all global functions, in branches and bodies of lets, too; functions that carry `Compiler` are left
    alone. What no target runs goes to the reference. Unlike `tune`, it races nothing end to end: costs of
    sub-graphs are added up.

    Growth: that of the rules and of the search, which is bounded by `budget`; besides, linear.

    Before:
        def @main(%x: Tensor[(2,), float32]) { Relu(Neg(%x)) }
    After:
        def @main(%x: Tensor[(2,), float32]) { @collage_onnxruntime_Neg_Relu(%x) }
        def @collage_onnxruntime_Neg_Relu(%p0: Tensor[(2,), float32]) attributes {
          Compiler="onnxruntime", Primitive=1, global_symbol="collage_onnxruntime_Neg_Relu",
          target="cpu -toolchain=onnxruntime"
        } { Relu(Neg(%p0)) }

    Attributes:
        targets: Names of toolchains, or texts of targets ("cpu -toolchain=openvino -threads=2"); empty for
            all that work here.
        estimator: Estimator of costs: "measured", or a name of `COST_ESTIMATORS`.
        seconds: Time for measuring.
        max_depth: Operators on the longest path of a fused candidate; segments may be longer.
        max_candidates: For each target; 0 for any number.
        budget: States that the search expands before it gives up being exact.
    """

    targets: tuple[str, ...] = ()
    estimator: str = MEASURED
    seconds: float = 60.0
    max_depth: int = 8
    max_candidates: int = 3_000
    budget: int = 200_000

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:  # noqa: ARG002 - of all passes
        """The module with the cheapest partition; the same if there is nothing to give away.

        Raises:
            UsageError: There is no such toolchain or estimator, or no toolchain to measure with.
            UnsupportedModelError: No toolchain runs some expression, or it cannot be checked in this time.
            IntarsiaError: Measuring is impossible.
        """
        from intarsia.collage.collage import collage
        from intarsia.collage.function_search import CollageOptions
        from intarsia.collage.gather_specs import GatherOptions, gather_partition_specs
        from intarsia.collage.rules.rule_limits import RuleLimits
        from intarsia.collage.search import SearchOptions
        from intarsia.collage.sub_graph import SubGraphConfig

        targets = self._targets()
        limits = RuleLimits(SubGraphConfig(max_exits=1, max_depth=self.max_depth))
        specs = gather_partition_specs(targets, GatherOptions(limits))
        options = CollageOptions(
            covers=1,
            max_candidates=self.max_candidates,
            search=SearchOptions(budget=self.budget),
            unverified=False,
            conflicts=_conflicts(),
        )
        if not _is_open(mod):
            return mod
        with self._costs(mod, targets) as (estimator, boundaries):
            return collage(mod, specs, estimator, boundaries, options).best.applied(mod)

    def _targets(self) -> tuple[Target, ...]:
        from intarsia.passes.annotate_target import toolchain_target
        from intarsia.toolchain import targets, toolchain_for

        if not self.targets:
            return targets()
        asked = tuple(map(toolchain_target, self.targets))
        if self.estimator == MEASURED:
            for target in asked:
                toolchain_for(target)  # says why it is not usable
        return asked

    @contextmanager
    def _costs(
        self, mod: IRModule, targets: tuple[Target, ...]
    ) -> Iterator[tuple[CostEstimator, BoundaryCosts]]:
        from intarsia.collage.costs.boundary_costs import NO_BOUNDARIES
        from intarsia.collage.costs.cost_estimator import COST_ESTIMATORS
        from intarsia.collage.costs.measured_costs import measured_costs

        if self.estimator != MEASURED:
            yield COST_ESTIMATORS[self.estimator], NO_BOUNDARIES
            return
        if not targets:
            raise UsageError("no toolchain works here, so there is nothing to measure with")
        with measured_costs(mod, targets, self.seconds) as found:
            yield found


def _conflicts() -> frozenset[tuple[str, str]]:
    from intarsia.collage.conflicts import declared_conflicts

    return declared_conflicts()


def _is_open(mod: IRModule) -> bool:
    """Whether some function has a call that a toolchain could be given."""
    from intarsia.collage.rules.must_be_lowered import must_be_lowered
    from intarsia.ir import post_order
    from intarsia.passes.functions.sealed import is_sealed

    functions = [one for one in mod.graph_functions.values() if not is_sealed(one)]
    return any(must_be_lowered(expr) for function in functions for expr in post_order(function.body))
