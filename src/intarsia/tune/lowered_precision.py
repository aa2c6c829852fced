"""Parts of a program in narrower types, within a bound on the error, as a transformation."""

from __future__ import annotations

from typing import Final

from intarsia.ir import Expr, IRModule
from intarsia.measure.judge.accuracy import with_error_bound
from intarsia.passes import ToMixedPrecision
from intarsia.target import TARGET_OPTIONS
from intarsia.transform import PassContext
from intarsia.tune.target_options import marked_functions, set_target_options, with_marked_functions
from intarsia.tune.transformations import transformation

OPTIONS: Final = ("inference_precision", "multiply_in")
"""Target options of toolchains that select the operators to compute in a narrower type themselves."""


@transformation
def lowered_precision(mod: IRModule, toolchain: str, dtype: str, bound: float) -> IRModule:
    """Compute the functions of a toolchain in a narrower type, and set the program's error bound.

    A toolchain that understands the option gets it; `ToMixedPrecision` rewrites the functions of others to
    compute their heavy operators in the type. A program that stays unchanged gets no bound.

    Args:
        mod: The program.
        toolchain: Name of the toolchain.
        dtype: "float16" or "bfloat16".
        bound: Largest error, relative to the largest value of each output.

    Raises:
        UsageError: The type is another one, or the bound is no positive number.

    Before:
        def @f(%x: Tensor[(2,), float32]) attributes {
          Compiler="openvino", target="cpu -toolchain=openvino"
        } { Relu(%x) }
    After: (toolchain="openvino", dtype="bfloat16", bound=0.01)
        #[attrs(error_bound=0.01)]
        def @f(%x: Tensor[(2,), float32]) attributes {
          Compiler="openvino", target="cpu -toolchain=openvino -inference_precision=bfloat16"
        } { Relu(%x) }
    """
    options = [name for name in OPTIONS if _is_understood(name, toolchain, dtype)]
    if options:
        lowered = set_target_options(mod, toolchain, {options[0]: dtype})
    else:
        lowered = _lower_functions(mod, toolchain, ToMixedPrecision(dtype))
    return mod if lowered is mod else with_error_bound(lowered, bound)


def _is_understood(option: str, toolchain: str, dtype: str) -> bool:
    declared = TARGET_OPTIONS[option]
    return declared.is_understood_by(toolchain) and dtype in declared.choices


def _lower_functions(mod: IRModule, toolchain: str, lowering: ToMixedPrecision) -> IRModule:
    """The program with the functions of a toolchain lowered, which passes otherwise leave alone."""
    ctx = PassContext.current()
    replacements: dict[Expr, Expr] = {}
    for marked in marked_functions(mod):
        if marked.target.toolchain == toolchain:
            new = lowering.transform_function(marked.function, mod, ctx)
            if new is not marked.function:
                replacements[marked.function] = new
    return with_marked_functions(mod, replacements)
