"""The matrix products of native that a library computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from intarsia.ir import Call, IRModule, post_order
from intarsia.native.graph.library_product import ProductShape
from intarsia.native.graph.library_use import LibraryUse, product_of_call
from intarsia.native.object_code.allowed_symbols import OPENBLAS
from intarsia.support.errors import UsageError
from intarsia.toolchain.native.libraries import library_trouble
from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.evaluator import target_of
from intarsia.tune.instruction import Instruction
from intarsia.tune.strategy import Greedy, Strategy
from intarsia.tune.target_options import change_target_option, toolchain_functions
from intarsia.tune.trace import Trace
from intarsia.tune.transformations import transformation
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

AS_IT_IS: Final = "as it is"
"""The decision to compute a product by our own kernel; it stands first, and wins ties."""

_NATIVE: Final = "native"


@transformation
def product_by(mod: IRModule, shape: str, library: str, target: str = "") -> IRModule:
    """Let a library compute the matrix products of a shape, in all functions assigned to native.

    Args:
        mod: The program.
        shape: Rows, depth and columns, with a batch before them if there is one: "128x768x3072".
        library: Name of the library; it takes the place of another one.
        target: Target of the whole program if it assigns no function to a toolchain; "" for none.

    Raises:
        UsageError: There is no such shape.

    Before:
        def @f(%x: Tensor[(2,), float32]) attributes {
          Compiler="native", target="cpu -toolchain=native"
        } { Relu(%x) }
    After: (shape="128x768x3072", library="openblas")
        def @f(%x: Tensor[(2,), float32]) attributes {
          Compiler="native", target="cpu -toolchain=native -libs=openblas:128x768x3072"
        } { Relu(%x) }
    """
    added = ProductShape.parse(shape)

    def changed(text: str | None) -> str:
        use = LibraryUse() if text is None else LibraryUse.parse(text)
        if use.library == library and not use.shapes:  # all products are the library's
            return str(use)
        others = use.shapes if use.library == library else ()
        return str(LibraryUse(library, tuple(sorted({*others, added}))))

    return change_target_option(mod, _NATIVE, "libs", changed, target)


@register_pass
@dataclass(frozen=True)
class TuneLibraries(TuningPass, opt_level=0):
    """Decides which matrix products of native a library computes (seed collage_rfc, appendix B).

    Products of equal shape are decided together, those with most multiplications first. Our own kernels
    stand where measuring shows no clear gain: they are fused with the operators around them, and read
    weights that were packed before.

    Attributes:
        library: Name of the library; where it is not installed there is nothing to decide.
        least_share: Least share of the multiplications of all products at which a shape is decided.
        target: Target of the whole program if it assigns no function to a toolchain; the evaluator's target
            if empty.

    Raises:
        UsageError: The share is not from 0 to 1.
    """

    strategy: Strategy = field(default_factory=Greedy, kw_only=True)
    library: str = field(default=OPENBLAS, kw_only=True)
    least_share: float = field(default=0.05, kw_only=True)
    target: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if not 0 <= self.least_share <= 1:
            raise UsageError(f"the least share is {self.least_share}; expected 0 to 1")

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        """Return an instruction for each shape that matters, or one without a choice."""
        target = self.target or target_of(ctx.evaluator)
        instructions = [
            Instruction(f"products {shape}", {AS_IT_IS: Choice(), self.library: self._choice(shape, target)})
            for shape in self._shapes(trace.out_mod, target)
        ]
        return instructions or [Instruction("products", {AS_IT_IS: Choice()})]

    def _choice(self, shape: ProductShape, target: str) -> Choice:
        return Choice(product_by, {"shape": str(shape), "library": self.library, "target": target})

    def _shapes(self, mod: IRModule, target: str) -> Iterator[ProductShape]:
        """Yield the shapes to decide on, those with most multiplications first."""
        if library_trouble(self.library) is not None:
            return
        work: Counter[ProductShape] = Counter()
        for function in toolchain_functions(mod, _NATIVE, target):
            for expr in post_order(function):
                types = [arg.checked_type for arg in expr.args] if isinstance(expr, Call) else []
                product = product_of_call(expr, types) if isinstance(expr, Call) else None
                if product is not None:
                    work[product.shape] += product.shape.multiply_adds
        least = self.least_share * work.total()
        for shape, multiply_adds in sorted(work.items(), key=lambda item: (-item[1], item[0])):
            if multiply_adds >= least:
                yield shape
