"""Heavy operators in 16-bit floating point, with as few casts as possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, DType, Function, GlobalVar, IRModule, Op, post_order
from intarsia.op.operator_facts import PrecisionKind
from intarsia.op.operator_table import OPERATORS, facts_of
from intarsia.passes.precision.lower_precision import LowerPrecision
from intarsia.passes.quantise.heavy_layer import heavy_layers, top_level
from intarsia.support.errors import UsageError
from intarsia.transform import DiagnosticLevel, DiagnosticNote, FunctionPass, PassContext, register_pass

DTYPES: Final = ("float16", "bfloat16")


@register_pass
@dataclass(frozen=True)
class ToMixedPrecision(FunctionPass, opt_level=0, required=("InferType",)):
    """Computes convolutions and matrix products of float32 in float16 or bfloat16.

    Every operator is one of three kinds (`op.operator_table`): the heavy ones are lowered, elementwise and
    moving ones follow if all their computed inputs are lowered, the others keep float32 and get their inputs
    cast back. A value is cast once for all its users, and only where its two kinds of users meet; constants
    are cast at compile time. A constant that the type cannot hold (a mask of -1e38, an epsilon of 1e-12)
    keeps its operator in float32. An operator that follows and has inputs of both kinds is computed in
    float32.

    Parameters, results, let values, branches, and what is passed to functions and loop bodies keep their
    types, so that control flow stays consistent: inside of each, the same rules apply.

    Results differ by the rounding of the type: about 3 decimal digits for float16, whose largest number is
    65504, and 2 for bfloat16, which has the range of float32. Sums are accumulated in float32 by the
    toolchains below; onnx.reference rounds where NumPy does.

    What runs them, on a CPU with AVX512-BF16, AVX512-FP16 and AMX. Times are relative to float32, of a MatMul
    (128, 512) x (512, 512) and a 3x3 Conv of 32 to 64 channels on 28 x 28, with casts around:

    | toolchain           | float16                             | bfloat16                        |
    |---------------------|-------------------------------------|---------------------------------|
    | onnxruntime 1.31    | MatMul 1.7, Conv 1.0 (via float32)  | refused: no kernels             |
    | openvino 2026.4     | MatMul 1.0, Conv 1.0 (as float32)   | MatMul 0.5, Conv 0.6 (natively) |
    | reference           | yes                                 | yes                             |

    Source: the pass of that name in TVM and automatic mixed precision of training frameworks.

    Raises:
        UsageError: An unknown type or operator, one that both `keep` and `lower` name, or a negative number.

    Attributes:
        dtype: "float16" or "bfloat16".
        keep: Operators that keep float32, besides those of the table.
        lower: Operators that are lowered, whatever the table says.
        keep_io: Whether parameters and results of @main keep float32; otherwise they get the lower type,
            unless something calls @main.
        layers: Numbers of the convolutions and products to lower, as `AnnotateQuantization` counts them; if
            there are any, no other operators are lowered, but those that follow.

    Before:
        def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(3, 3), float32]) {
          Softmax(Relu(MatMul(MatMul(%x, %w), %w)))
        }
    After:
        def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(3, 3), float32]) {
          %a = Cast(%w, to=10);
          %y = Relu(MatMul(MatMul(Cast(%x, to=10), %a), %a));
          Softmax(Cast(%y, to=1))
        }
    """

    dtype: str = "float16"
    keep: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()
    keep_io: bool = True
    layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the options."""
        if self.dtype not in DTYPES:
            raise UsageError(f"dtype is {self.dtype!r}, expected {' or '.join(DTYPES)}")
        unknown = [name for name in (*self.keep, *self.lower) if name not in OPERATORS]
        if unknown:
            raise UsageError(
                f"ONNX has no operator {unknown[0]!r}", help="names are as in `op.operator_table`"
            )
        both = set(self.keep) & set(self.lower)
        if both:
            raise UsageError(f"{min(both)} stands in both keep and lower")
        if any(number < 0 for number in self.layers):
            raise UsageError(f"layers has {min(self.layers)}, expected numbers from 0")

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function in mixed precision; linear in the program."""
        is_interface = "main" in mod and mod["main"] is function and not _calls_main(mod)
        lowering = LowerPrecision(DType(self.dtype), self._kinds(function))
        after = lowering.function(function, keep_io=self.keep_io or not is_interface)
        for call, constant in lowering.declined.items():
            note = DiagnosticNote(constant, f"does not fit {self.dtype}")
            ctx.diagnose(call, DiagnosticLevel.MISSED, "keeps float32: a constant of it does not fit", [note])
        return after

    def _kinds(self, function: Function) -> Callable[[Call], PrecisionKind]:
        """Return the function from a call of a function's body to its treatment."""
        if not self.layers:
            return self._kind
        layers = heavy_layers(top_level(function.body), (DType.FLOAT32, DType(self.dtype)))
        chosen = {layer.call for layer in layers if layer.number in set(self.layers)}

        def kind(call: Call) -> PrecisionKind:
            if call in chosen:
                return PrecisionKind.LOWER
            given = self._kind(call)
            return PrecisionKind.KEEP if given is PrecisionKind.LOWER else given

        return kind

    def _kind(self, call: Call) -> PrecisionKind:
        op = call.op
        assert isinstance(op, Op)
        if op.name in self.keep or op.domain:
            return PrecisionKind.KEEP
        return PrecisionKind.LOWER if op.name in self.lower else facts_of(op).precision


def _calls_main(mod: IRModule) -> bool:
    return any(
        isinstance(node, GlobalVar) and node.name == "main"
        for function in mod.graph_functions.values()
        for node in post_order(function)
    )
