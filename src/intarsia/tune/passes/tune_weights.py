"""Weight compression of native's memory-bound matrix products."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from intarsia.ir import IRModule
from intarsia.measure.judge.accuracy import with_error_bound
from intarsia.native.graph import WeightStorage
from intarsia.passes import PartitionWhole
from intarsia.target import Target
from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.evaluator import target_of
from intarsia.tune.instruction import Instruction
from intarsia.tune.strategy import Greedy, Strategy
from intarsia.tune.target_options import marked_functions, set_target_options
from intarsia.tune.trace import Trace
from intarsia.tune.transformations import transformation
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

AS_IT_IS: Final = "as it is"
"""The decision to keep float32; it stands first, and wins ties."""

_NATIVE: Final = "native"


@transformation
def weights_in(mod: IRModule, storage: str, bound: float, target: str = "") -> IRModule:
    """Set the storage type of the weights of native's products of few rows, in all functions of native.

    Args:
        mod: The program.
        storage: One of `WeightStorage`: "f16".
        bound: The largest error of outputs that is allowed, relative to the largest value of each.
        target: Target of the whole program if it assigns no function to a toolchain; "" for none.

    Raises:
        UsageError: There is no such type.

    Before:
        def @f(%x: Tensor[(2,), float32]) attributes {
          Compiler="native", target="cpu -toolchain=native"
        } { Relu(%x) }
    After: (storage="f16", bound=0.01)
        #[error_bound = 0.01]
        def @f(%x: Tensor[(2,), float32]) attributes {
          Compiler="native", target="cpu -toolchain=native -weights=f16"
        } { Relu(%x) }
    """
    if target and not any(marked_functions(mod)):
        mod = PartitionWhole(target)(mod)
    return with_error_bound(set_target_options(mod, _NATIVE, {"weights": storage}), bound)


@register_pass
@dataclass(frozen=True)
class TuneWeights(TuningPass, opt_level=0):
    """Decides on weight compression of memory-bound matrix products in native; sums stay float32.

    Results then differ by more than rounding explains, so the user gives a bound on the error. A type with a
    rounding error of weights above the bound is not tried.

    Attributes:
        tolerance: Largest error allowed, relative to the largest value of each output.
        target: Target of the whole program if it assigns no function to a toolchain; the evaluator's target
            if empty.

    Raises:
        UsageError: The bound is no positive number.
    """

    strategy: Strategy = field(default_factory=Greedy, kw_only=True)
    tolerance: float = field(kw_only=True)
    target: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        with_error_bound(IRModule({}), self.tolerance)

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        """Return one instruction; without an alternative if native has no function."""
        target = self.target or target_of(ctx.evaluator)
        choices = {AS_IT_IS: Choice()}
        if _is_native(trace.out_mod, target):
            choices |= {
                storage.value: Choice(
                    weights_in, {"storage": storage.value, "bound": self.tolerance, "target": target}
                )
                for storage in WeightStorage
                if 0 < storage.relative_error <= self.tolerance
            }
        return [Instruction("weights of native", choices)]


def _is_native(mod: IRModule, target: str) -> bool:
    """Whether a program has functions of native."""
    marked = tuple(marked_functions(mod))
    if marked or not target:
        return any(function.target.toolchain == _NATIVE for function in marked)
    return Target.parse(target).toolchain == _NATIVE
