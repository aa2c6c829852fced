"""The algorithms by which native computes the convolutions of a program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from intarsia.ir import IRModule
from intarsia.native.graph.convolution_algorithm import (
    ConvolutionAlgorithm,
    ConvolutionAlgorithms,
    ConvolutionShape,
    estimated_costs,
    estimated_tile,
    transformable_shape,
)
from intarsia.native.machine.relative_costs import RelativeCosts
from intarsia.support.errors import UsageError
from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.kernels import KernelGroup, KernelQuestion, TuneKernels
from intarsia.tune.target_options import change_target_option
from intarsia.tune.transformations import transformation

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
class TuneConvolutions(TuneKernels, opt_level=0):
    """Decides by which algorithm native computes windows of 3 by 3: direct sums, or transforms.

    Convolutions of equal shape are decided together, those with most products first. Native's own estimate
    stands where measuring shows no clear gain; what it holds for hopeless is not tried.

    Attributes:
        algorithms: Names of algorithms to try; "winograd_6" is about ten times less accurate than "direct".

    Raises:
        UsageError: There is no algorithm of a name.
    """

    algorithms: tuple[str, ...] = field(default=("direct", "winograd_2", "winograd_4"), kw_only=True)

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

    def questions(self, groups: Sequence[KernelGroup], target: str) -> list[KernelQuestion]:
        """Return a question for each shape with alternatives, those with most work first."""
        by_shape: defaultdict[ConvolutionShape, list[KernelGroup]] = defaultdict(list)
        for group in groups:
            for shape in _shapes(group):
                by_shape[shape].append(group)
        questions = []
        for shape in sorted(
            by_shape, key=lambda shape: (-sum(group.flop for group in by_shape[shape]), shape)
        ):
            names = self._alternatives(shape, by_shape[shape][0].costs)
            if names:
                keys = tuple(group.key for group in by_shape[shape])
                choices = self._choices(shape, names, target)
                questions.append(KernelQuestion(f"convolutions {shape}", keys, choices, has_less_work=True))
        return questions

    def _choices(self, shape: ConvolutionShape, names: Iterable[str], target: str) -> dict[str, Choice]:
        args = {"shape": str(shape), "target": target}
        return {name: Choice(convolution_by, {**args, "algorithm": name}) for name in names}

    def _alternatives(self, shape: ConvolutionShape, machine: RelativeCosts) -> list[str]:
        """Return the algorithms that are worth a trial for a shape."""
        costs = {algorithm.value: cost for algorithm, cost in estimated_costs(shape, machine).items()}
        best, tile = min(costs.values()), estimated_tile(shape, machine)
        return [
            name
            for name in self.algorithms
            if ConvolutionAlgorithm(name).tile != tile and costs.get(name, best) <= _HOPELESS * best
        ]


def _shapes(group: KernelGroup) -> set[ConvolutionShape]:
    shapes = map(transformable_shape, group.rule.calls)
    return {shape for shape in shapes if shape is not None}
