"""The algorithms by which native computes the convolutions of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from intarsia.ir import Call, IRModule, post_order
from intarsia.native.graph.convolution_algorithm import (
    ConvolutionAlgorithm,
    ConvolutionAlgorithms,
    ConvolutionShape,
    estimated_costs,
    estimated_tile,
    transformable_shape,
)
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.toolchain.native.plan import costs_of
from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.evaluator import target_of
from intarsia.tune.instruction import Instruction
from intarsia.tune.kernels import AS_IT_IS, KernelGroup, KernelQuestion
from intarsia.tune.kernels.tune_kernels import kernel_instructions
from intarsia.tune.strategy import Prefixes, Strategy
from intarsia.tune.target_options import change_target_option, toolchain_functions
from intarsia.tune.trace import Trace
from intarsia.tune.transformations import transformation
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

_NATIVE: Final = "native"
_HOPELESS: Final = 1.6
"""Ratio of estimated times to the best algorithm above which an algorithm is not tried; a rule of thumb."""


@transformation
def convolution_by(mod: IRModule, shape: str, algorithm: str, target: str = "") -> IRModule:
    """Select native's algorithm for the convolutions of a shape, in all functions assigned to native.

    Args:
        mod: The program.
        shape: Channels of the input, rows and columns and channels of the result: "64x56x56x64".
        algorithm: One of `ConvolutionAlgorithm`.
        target: Target of the whole program if it assigns no function to a toolchain; "" for none.

    Raises:
        UsageError: There is no such algorithm.

    Before:
        def @f(%x: Tensor[(2,), float32]) attributes {
          Compiler="native", target="cpu -toolchain=native"
        } { Relu(%x) }
    After: (shape="64x56x56x64", algorithm="direct")
        def @f(%x: Tensor[(2,), float32]) attributes {
          Compiler="native", target="cpu -toolchain=native -convolutions=auto,64x56x56x64=direct"
        } { Relu(%x) }
    """
    others = ConvolutionAlgorithms.parse(f"auto,{shape}={algorithm}").others

    def changed(text: str | None) -> str:
        algorithms = ConvolutionAlgorithms.parse(text or "auto")
        return str(
            ConvolutionAlgorithms(
                algorithms.default, tuple(sorted({**dict(algorithms.others), **dict(others)}.items()))
            )
        )

    return change_target_option(mod, _NATIVE, "convolutions", changed, target)


@register_pass
@dataclass(frozen=True)
class TuneConvolutions(TuningPass, opt_level=0):
    """Decides by which algorithm native computes windows of 3 by 3: direct sums, or transforms.

    Convolutions of equal shape are decided together, those with most products first. Native's own estimate
    stands where measuring shows no clear gain; what it holds for hopeless is not tried.

    Attributes:
        algorithms: Names of algorithms to try; "winograd_6" is about ten times less accurate than "direct".
        target: Target of the whole program if it assigns no function to a toolchain; the evaluator's target
            if empty.

    Raises:
        UsageError: There is no algorithm of a name.
    """

    strategy: Strategy = field(default_factory=Prefixes, kw_only=True)
    algorithms: tuple[str, ...] = field(default=("direct", "winograd_2", "winograd_4"), kw_only=True)
    target: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        object.__setattr__(self, "algorithms", tuple(dict.fromkeys(self.algorithms)))
        algorithms = [
            algorithm.value
            for algorithm in ConvolutionAlgorithm
            if algorithm is not ConvolutionAlgorithm.AUTO
        ]
        for name in self.algorithms:
            if name not in algorithms:
                raise UsageError(
                    f"{name!r} is no algorithm of convolutions", help=f"known: {', '.join(algorithms)}"
                )

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        """Return an instruction for each shape with alternatives, or one without a choice.

        Where kernels can be timed, shapes that cannot pay are left out, and those that save most stand first.
        """
        target = self.target or target_of(ctx.evaluator)

        def ask(groups: Sequence[KernelGroup], target: str) -> list[KernelQuestion]:
            return [
                KernelQuestion(
                    f"convolutions {shape}",
                    tuple(group.key for group in groups if shape in _shapes(group)),
                    self._choices(shape, names, target),
                    has_less_work=True,
                )
                for shape, names in self._alternatives(trace.out_mod, target)
            ]

        instructions = kernel_instructions(ask, target, trace, ctx)
        return instructions or [Instruction("convolutions", {AS_IT_IS: Choice()})]

    def _choices(self, shape: ConvolutionShape, names: Iterable[str], target: str) -> dict[str, Choice]:
        args = {"shape": str(shape), "target": target}
        return {name: Choice(convolution_by, {**args, "algorithm": name}) for name in names}

    def _alternatives(self, mod: IRModule, target: str) -> Iterator[tuple[ConvolutionShape, list[str]]]:
        """Yield shapes, those with most multiply-adds first, with the algorithms worth a trial."""
        machine = costs_of(Target(target or f"cpu -toolchain={_NATIVE}"))
        for shape, _ in sorted(_products(mod, target).items(), key=lambda item: (-item[1], item[0])):
            costs = {algorithm.value: cost for algorithm, cost in estimated_costs(shape, machine).items()}
            best, tile = min(costs.values()), estimated_tile(shape, machine)
            names = [
                name
                for name in self.algorithms
                if ConvolutionAlgorithm(name).tile != tile and costs.get(name, best) <= _HOPELESS * best
            ]
            if names:
                yield shape, names


def _shapes(group: KernelGroup) -> set[ConvolutionShape | None]:
    return {transformable_shape(call) for call in group.rule.calls}


def _products(mod: IRModule, target: str) -> Counter[ConvolutionShape]:
    """Count the multiply-adds of native's convolutions by shape."""
    products: Counter[ConvolutionShape] = Counter()
    for function in toolchain_functions(mod, _NATIVE, target):
        for expr in post_order(function):
            shape = transformable_shape(expr) if isinstance(expr, Call) else None
            if shape is not None:
                products[shape] += shape.multiply_adds
    return products
