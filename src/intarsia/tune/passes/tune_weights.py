"""In how many bytes native stores the weights that products wait for."""

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
    """Let native store the weights of products of few rows in a type, in all functions that it is given.

    Args:
        mod: The program.
        storage: One of `WeightStorage`: "f16".
        bound: The largest error of outputs that is allowed, relative to the largest value of each.
        target: Who gets the whole of a program that gives nothing to anybody; "" for nobody.

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
    """Decides whether native stores weights that products wait for in fewer bytes; sums stay float32.

    Results then differ by more than rounding explains, so the user says by how much at most. A type whose
    weights alone may be off by more is not tried.

    Attributes:
        tolerance: Largest error allowed, relative to the largest value of each output.
        target: Who gets the whole of a program that gives nothing to anybody; the target that candidates are
            evaluated for if empty.

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
        """One; without an alternative if native is given nothing."""
        target = self.target or target_of(ctx.evaluator)
        choices = {AS_IT_IS: Choice()}
        if _is_native(trace.out_mod, target):
            choices |= {
                each.value: Choice(
                    weights_in, {"storage": each.value, "bound": self.tolerance, "target": target}
                )
                for each in WeightStorage
                if 0 < each.relative_error <= self.tolerance
            }
        return [Instruction("weights of native", choices)]


def _is_native(mod: IRModule, target: str) -> bool:
    """Whether native gets something of a program."""
    marked = tuple(marked_functions(mod))
    if marked or not target:
        return any(each.target.toolchain == _NATIVE for each in marked)
    return Target.parse(target).toolchain == _NATIVE
