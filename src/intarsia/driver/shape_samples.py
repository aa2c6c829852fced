"""The sizes of a model's symbolic dimensions: those that the user gives, of the inputs, or usual ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from intarsia.ir import DimRange, Function, IRModule, SymbolicDim, TensorType, dim_ranges, with_dim_ranges
from intarsia.measure.sizes import DimSizes, SizeSample, choose_samples, default_sizes
from intarsia.measure.sizes.dim_sizes import SizesArgument
from intarsia.measure.sizes.summed_dims import sum_range, summed_dims, with_sums
from intarsia.passes import bind_sizes, name_dims
from intarsia.runtime.plan import PlanVariant
from intarsia.support.errors import UsageError


@dataclass(frozen=True, slots=True)
class SizedProgram:
    """A program whose symbolic dimensions have ranges.

    Attributes:
        module: The program; dimensions of one size are numbers, the others have names and ranges.
        samples: Sizes to measure and check; empty without symbolic dimensions.
    """

    module: IRModule
    samples: tuple[SizeSample, ...]


def sized_program(
    mod: IRModule,
    given: Mapping[str, SizesArgument],
    shapes: Mapping[str, Sequence[int]],
    on_note: Callable[[str], object],
    examples: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> SizedProgram:
    """Give each symbolic dimension of @main's parameters a range, and choose samples.

    A dimension that is named as a sum of others, such as "past + new", has the sum of their sizes.

    Args:
        mod: The program.
        given: Sizes that the user gives for dimensions, by name.
        shapes: Shapes of arrays by parameter name; a dimension that is not in `given` has their size.
        on_note: Called with a sentence about dimensions that get a usual range.
        examples: Shapes of arrays by parameter name that are run first, and fix no dimension; usual ranges
            are widened for them.

    Raises:
        UsageError: A dimension that the program does not have, or an input that does not fit.
        InvalidModelError: Types do not fit with these sizes.
    """
    sizes = {name: DimSizes.read(name, value) for name, value in given.items()}
    mod = name_dims(mod)
    sums = {name: parts for name, parts in summed_dims(mod["main"]).items() if name not in sizes}
    declared = {name: DimSizes(item) for name, item in dim_ranges(mod["main"]).items()}
    usual = {name: declared.get(name, item) for name, item in default_sizes(mod["main"]).items()}
    if unknown := next((name for name in sizes if name not in usual), None):
        names = ", ".join(map(repr, usual)) or "none"
        raise UsageError(
            f"the model has no symbolic dimension {unknown!r}", help=f"its symbolic dimensions: {names}"
        )
    measured, shown = _sizes_of(mod["main"], shapes), _sizes_of(mod["main"], examples)
    usual = {name: item.widened(shown[name]) if name in shown else item for name, item in usual.items()}
    for name, size in (shown | measured).items():
        if name in sizes and size not in sizes[name].range:
            raise UsageError(f"an input has {name}={size}, expected {sizes[name].range} as --shape says")
        if name in measured and name not in sizes:
            sizes[name] = DimSizes(DimRange(size, size))
    sums = {name: parts for name, parts in sums.items() if name not in measured}
    assumed = {name: item for name, item in usual.items() if name not in sizes | declared | sums}
    if assumed:
        words = ", ".join(f"{name}={_words(item)}" for name, item in assumed.items())
        on_note(f"the model has symbolic dimensions without sizes: tuned for {words}; --shape gives others")
    sizes = {name: sizes.get(name, item) for name, item in usual.items() if name not in sums}
    ranges = {name: item.range for name, item in sizes.items()}
    ranges |= {name: sum_range(parts, ranges) for name, parts in sums.items()}
    fixed = {name: item.low for name, item in ranges.items() if item.low == item.high}
    mod = bind_sizes(mod, fixed)
    sizes = {name: item for name, item in sizes.items() if name not in fixed}
    sums = {name: parts for name, parts in sums.items() if name not in fixed}
    samples = choose_samples(sizes)
    # Given arrays have sizes of their own, which come first.
    usual_sizes = {name: size for name, size in (shown | measured).items() if name in sizes}
    if usual_sizes and samples:
        is_named = samples[0].is_named or usual_sizes.keys() == sizes.keys()
        first = SizeSample({**samples[0].sizes, **usual_sizes}, samples[0].weight, is_named)
        samples = (first, *(sample for sample in samples[1:] if sample.key != first.key))
    left = {name: item for name, item in ranges.items() if name not in fixed}
    return SizedProgram(with_dim_ranges(mod, left), with_sums(samples, sums, fixed))


def with_variants(samples: Sequence[SizeSample], variants: Sequence[PlanVariant]) -> tuple[SizeSample, ...]:
    """Return samples that have, besides, the sizes of the variants of a plan."""
    keys = {frozenset(sample.sizes.items()) for sample in samples}
    added = [
        SizeSample({**samples[0].sizes, **variant.sizes})
        for variant in variants
        if frozenset({**samples[0].sizes, **variant.sizes}.items()) not in keys
    ]
    return (samples[0], *added, *samples[1:])


def shapes_of(inputs: Mapping[str, npt.NDArray[Any]]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of arrays by their names."""
    return {name: array.shape for name, array in inputs.items()}


def _sizes_of(main: Function, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return the sizes of symbolic dimensions that shapes of parameters have.

    Raises:
        UsageError: One has two sizes.
    """
    sizes: dict[str, int] = {}
    for param in main.params:
        type_, shape = param.checked_type, shapes.get(param.name)
        if shape is None or not isinstance(type_, TensorType) or type_.shape is None:
            continue
        for dim, size in zip(type_.shape, shape, strict=False):
            if isinstance(dim, SymbolicDim) and sizes.setdefault(dim.name, size) != size:
                raise UsageError(f"the inputs have {dim.name}={sizes[dim.name]} and {dim.name}={size}")
    return sizes


def _words(sizes: DimSizes) -> str:
    step = f"/{sizes.multiple}" if sizes.multiple != 1 else ""
    return f"{sizes.range.low}..{sizes.range.high}{step}"
