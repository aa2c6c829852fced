"""Narrower types for the functions of toolchains, within a bound on the error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from intarsia.ir import IRModule
from intarsia.measure.judge.accuracy import with_error_bound
from intarsia.passes import ToMixedPrecision
from intarsia.support.errors import UsageError
from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.evaluator import target_of
from intarsia.tune.instruction import Instruction
from intarsia.tune.lowered_precision import lowered_precision
from intarsia.tune.strategy import Greedy, Strategy
from intarsia.tune.target_options import given_functions
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

AS_IT_IS: Final = "as it is"
"""The decision to keep the precision; it stands first, and wins ties."""


@register_pass
@dataclass(frozen=True)
class TunePrecision(TuningPass, opt_level=0):
    """Decides for each toolchain of a program whether its functions are computed in a narrower type.

    Results then differ by more than rounding explains, so the user gives a bound on the error. A program in
    narrower types carries that bound, is checked against it wherever it is measured, and is refused if an
    error is larger, however fast it is. An unchanged program keeps the usual tolerance.

    Times relative to float32, two threads of a CPU with AVX512-BF16, AVX512-FP16 and AMX, of four MatMul
    of (128, 512) x (512, 512) and three 3x3 Conv of 64 channels on 28 x 28, and the largest error of both:

    | toolchain     | float16                        | bfloat16                     |
    |---------------|--------------------------------|------------------------------|
    | openvino      | 0.25 to 0.30, error 7e-4       | 0.24 to 0.29, error 4e-3     |
    | onnxruntime   | 1.2 to 2.5 (via float32), 4e-4 | refused: no kernels          |
    | native        | 2.4 to 8.5 (via float32), 7e-4 | see below                    |

    Native multiplies in bfloat16 by the instruction for it (`-multiply_in=bfloat16`). Times of whole models
    relative to its float32, one thread of the Zen 5 family: ResNet-50 0.5, BERT 0.5, MobileNetV2 0.6, U-Net
    0.7, SqueezeNet 0.8, with errors of 3e-3 to 9e-3. Without the instruction nothing is gained.

    Of whole models on openvino: SqueezeNet 0.2 to 0.4, DenseNet-121 0.3, a small BERT 0.5 to 0.6, with errors
    up to 1.5e-3 in float16 and 5e-3 in bfloat16.

    Attributes:
        tolerance: Largest error allowed, relative to the largest value of each output.
        precisions: "float16" and "bfloat16", or one of them; of equal candidates the earlier wins.
        toolchains: Names of the toolchains to tune; all toolchains of the program's functions if empty.
        target: Target of the whole program if it assigns no function to a toolchain; the evaluator's target
            if empty.

    Raises:
        UsageError: The bound is no positive number, there is no type or an unknown one, or no function has a
            toolchain.
    """

    strategy: Strategy = field(default_factory=Greedy, kw_only=True)
    tolerance: float = field(kw_only=True)
    precisions: tuple[str, ...] = field(default=("float16", "bfloat16"), kw_only=True)
    toolchains: tuple[str, ...] = field(default=(), kw_only=True)
    target: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        for name in ("precisions", "toolchains"):
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))
        if not self.precisions:
            raise UsageError("there is no precision to choose", help="give float16, bfloat16, or both")
        for dtype in self.precisions:
            ToMixedPrecision(dtype)
        with_error_bound(IRModule({}), self.tolerance)

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        """Return an instruction for each toolchain; one without an alternative if there is none."""
        placement, functions = given_functions(trace.out_mod, self.target or target_of(ctx.evaluator))
        present = dict.fromkeys(str(function.target.toolchain) for function in functions)
        decisions = [
            self._decision(toolchain)
            for toolchain in present
            if not self.toolchains or toolchain in self.toolchains
        ]
        return [*placement, *decisions] or [Instruction("precision", {AS_IT_IS: Choice()})]

    def _decision(self, toolchain: str) -> Instruction:
        narrow = {
            dtype: Choice(
                lowered_precision, {"toolchain": toolchain, "dtype": dtype, "bound": self.tolerance}
            )
            for dtype in self.precisions
        }
        return Instruction(f"precision of {toolchain}", {AS_IT_IS: Choice(), **narrow})
