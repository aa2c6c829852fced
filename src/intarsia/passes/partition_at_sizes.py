"""Regions of what a toolchain supports once the symbolic dimensions of a program have sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from intarsia.ir import (
    ANY,
    Call,
    DimRange,
    Expr,
    Function,
    IRModule,
    SymbolicDim,
    TensorType,
    children,
    dim_ranges,
    post_order,
    with_children,
    with_fields,
)
from intarsia.passes.annotate_target import AnnotateTarget
from intarsia.passes.bind_dims import bind_sizes
from intarsia.passes.merge_compiler_regions import MergeCompilerRegions
from intarsia.passes.partition_graph import PartitionGraph
from intarsia.support.errors import InvalidModelError
from intarsia.target import Target
from intarsia.transform import PassContext

_SIZE: Final = 5
"""The size that shows what is supported; where it is out of a dimension's range, the nearest that is not."""


def partition_at_sizes(module: IRModule, target: Target, context: PassContext) -> IRModule | None:
    """Give a toolchain the calls that it supports where each symbolic dimension of @main has some size.

    A toolchain that compiles functions for every size, but says of a call only whether it supports it with
    the shapes that it has, refuses each call with a symbolic dimension. So the program is typed with numbers,
    and what is supported there is marked in the program with symbols. The toolchain may still refuse a region
    when it is compiled.

    Args:
        module: Typed.
        target: Target, with the toolchain.
        context: Context of the passes.

    Returns:
        The program with regions as functions; None without symbolic dimensions, or if types do not fit
        with numbers in their place.
    """
    ranges = dim_ranges(module["main"])
    sizes = {name: _size(ranges.get(name)) for name in _symbols(module["main"])}
    if not sizes:
        return None
    try:
        bound = bind_sizes(module, sizes)
    except InvalidModelError:
        return None
    annotated = AnnotateTarget((str(target),))(bound, context)
    for name, function in module.graph_functions.items():
        marked = _with_devices_of(function, annotated.graph_functions[name])
        module = module.with_function(name, marked)
    return PartitionGraph()(MergeCompilerRegions()(module, context), context)


def _symbols(main: Function) -> Iterator[str]:
    for param in main.params:
        type_ = param.checked_type
        if isinstance(type_, TensorType):
            yield from (dim.name for dim in type_.shape or () if isinstance(dim, SymbolicDim) and dim != ANY)


def _size(range_: DimRange | None) -> int:
    return _SIZE if range_ is None else min(max(_SIZE, range_.low), range_.high)


def _with_devices_of(function: Function, annotated: Function) -> Function:
    """Return a function with the devices of the calls of the same program with other types."""
    done: dict[Expr, Expr] = {}
    for expr, other in zip(post_order(function), post_order(annotated), strict=True):
        new = with_children(expr, tuple(done[child] for child in children(expr)))
        is_assigned = isinstance(other, Call) and other.virtual_device.target is not None
        done[expr] = with_fields(new, virtual_device=other.virtual_device) if is_assigned else new
    result = done[function]
    assert isinstance(result, Function)
    return result
