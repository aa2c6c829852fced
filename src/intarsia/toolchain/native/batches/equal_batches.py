"""First axes of any size that are equal in all programs that run: one batch under several names, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from intarsia.passes.batches.item_axes import ITEMS
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError
from intarsia.toolchain.onnx_port import parse_model
from intarsia.toolchain.source_function import source_function

if TYPE_CHECKING:
    from onnx import ModelProto, TypeProto, ValueInfoProto


def with_one_batch(source: KernelSource) -> KernelSource:
    """Return the source with one name for the first axes of its parameters, if they have to be equal.

    skl2onnx and Keras write a batch without a name for each parameter, tf2onnx a name for each. Such axes
    have to be equal where a Concat joins the parameters: sizes of 1 and of more items contradict each other
    there, whatever the other sizes are. An elementwise operation takes both, so that they may differ.

    Args:
        source: Source whose parameters may have dimensions of any size.
    """
    model = parse_model(source, "native")
    free = _batches(_inputs(model))
    if "" not in free.values() and len(set(free.values())) < 2:
        return source
    first, *others = free
    if not all(_are_equal(source, first, other) for other in others):
        return source
    symbol = free[first] or f"{first}[0]"
    for item in _inputs(model):
        if item.name in free:
            item.type.tensor_type.shape.dim[0].dim_param = symbol
    return replace(source, model=model.SerializeToString())


def dims_of(type_: TypeProto) -> tuple[int | str, ...]:
    """Return the dimensions of a type: a number, a symbol, or "" where nothing is known."""
    shape = type_.tensor_type.shape
    return tuple(int(dim.dim_value) if dim.HasField("dim_value") else str(dim.dim_param) for dim in shape.dim)


def bind_inputs(model: ModelProto, sizes: Mapping[str, int]) -> None:
    """Put numbers in place of the first axes of inputs; other types are inferred again.

    Args:
        model: The model, which is changed.
        sizes: Extents of first axes, by the names of the inputs.
    """
    for item in model.graph.input:
        if item.name in sizes:
            item.type.tensor_type.shape.dim[0].dim_value = sizes[item.name]
    del model.graph.value_info[:]
    for item in model.graph.output:
        if item.type.HasField("tensor_type"):
            item.type.tensor_type.ClearField("shape")


def _inputs(model: ModelProto) -> list[ValueInfoProto]:
    weights = {tensor.name for tensor in model.graph.initializer}
    return [item for item in model.graph.input if item.name not in weights]


def _batches(inputs: Sequence[ValueInfoProto]) -> dict[str, str]:
    """Return the first axes of any size by the names of the inputs; nothing if other axes have any size."""
    shapes = {item.name: dims_of(item.type) for item in inputs}
    if any(isinstance(dim, str) for shape in shapes.values() for dim in shape[1:]):
        return {}
    return {name: shape[0] for name, shape in shapes.items() if shape and isinstance(shape[0], str)}


def _are_equal(source: KernelSource, first: str, other: str) -> bool:
    """Return whether first axes of two inputs have to be equal, whatever the first axes of the others are."""
    return (
        _has_types(source, {first: 1, other: 1})
        and not _has_types(source, {first: 1, other: ITEMS})
        and not _has_types(source, {first: ITEMS, other: 1})
    )


def _has_types(source: KernelSource, sizes: Mapping[str, int]) -> bool:
    model = parse_model(source, "native")
    bind_inputs(model, sizes)
    try:
        source_function(replace(source, model=model.SerializeToString()))
    except CompileError:
        return False
    return True
