"""Operators that move elements, and reductions; shapes, axes and bounds are known before the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from intarsia.toolchain.torch.rule import Computation, NodeForm, Rule, Tensor


def _reshape(form: NodeForm) -> Computation:
    shape, keeps_zero = form.numbers(1) or [], form.attribute("allowzero", 0)

    def run(x: Tensor, _: Tensor) -> Tensor:
        sizes = [x.shape[axis] if not size and not keeps_zero else size for axis, size in enumerate(shape)]
        return x.reshape(sizes)

    return run


def _transpose(form: NodeForm) -> Computation:
    order = form.attribute("perm", None)
    return lambda x: x.permute(tuple(reversed(range(x.dim()))) if order is None else tuple(order))


def _concat(form: NodeForm) -> Computation:
    axis = form.attribute("axis", 0)
    return lambda *values: torch.cat(values, dim=axis)


def _slice(form: NodeForm) -> Computation:
    starts, ends = form.numbers(1) or [], form.numbers(2) or []
    axes, steps = form.numbers(3), form.numbers(4) or [1] * len(starts)
    form.require(all(step > 0 for step in steps), "with a negative step")
    parts = [slice(*bounds) for bounds in zip(starts, ends, steps, strict=True)]
    taken = list(range(len(starts))) if axes is None else axes

    def run(x: Tensor, *_: Tensor) -> Tensor:
        whole = [slice(None)] * x.dim()
        for axis, part in zip(taken, parts, strict=True):
            whole[axis] = part
        return x[tuple(whole)]

    return run


def _flatten(form: NodeForm) -> Computation:
    axis = form.attribute("axis", 1)

    def run(x: Tensor) -> Tensor:
        first = axis if axis >= 0 else axis + x.dim()
        rows = x.shape[:first].numel()
        return x.reshape(rows, x.numel() // rows if rows else x.shape[first:].numel())

    return run


def _squeeze(form: NodeForm) -> Computation:
    axes = form.numbers(1)
    return lambda x, *_: x.squeeze() if axes is None else x.squeeze(tuple(axes))


def _unsqueeze(form: NodeForm) -> Computation:
    axes = form.numbers(1) or []

    def run(x: Tensor, _: Tensor) -> Tensor:
        rank = x.dim() + len(axes)
        for axis in sorted(axis % rank for axis in axes):
            x = x.unsqueeze(axis)
        return x

    return run


def _expand(form: NodeForm) -> Computation:
    shape = form.numbers(1) or []
    return lambda x, _: x.expand(np.broadcast_shapes(tuple(x.shape), tuple(shape)))


def _split(form: NodeForm) -> Computation:
    axis, sizes = form.attribute("axis", 0), form.numbers(1)
    count = form.attribute("num_outputs", form.outputs)

    def run(x: Tensor, *_: Tensor) -> Any:
        part = -(-x.shape[axis] // count)
        whole = [min(part, max(0, x.shape[axis] - part * index)) for index in range(count)]
        return torch.split(x, whole if sizes is None else sizes, dim=axis)

    return run


def _gather(form: NodeForm) -> Computation:
    axis = form.attribute("axis", 0)

    def run(x: Tensor, indices: Tensor) -> Tensor:
        first = axis % x.dim()
        chosen = torch.where(indices < 0, indices + x.shape[first], indices).reshape(-1)
        found = torch.index_select(x, first, chosen)
        return found.reshape((*x.shape[:first], *indices.shape, *x.shape[first + 1 :]))

    return run


def _product(x: Tensor, axes: Sequence[int], keep: bool) -> Tensor:
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, dim=axis, keepdim=keep)
    return x


_REDUCTIONS: Mapping[str, Callable[[Tensor, Sequence[int], bool], Tensor]] = {
    "ReduceL1": lambda x, axes, keep: x.abs().sum(axes, keep),
    "ReduceL2": lambda x, axes, keep: x.square().sum(axes, keep).sqrt(),
    "ReduceMax": lambda x, axes, keep: x.amax(axes, keep),
    "ReduceMean": lambda x, axes, keep: x.mean(axes, keep),
    "ReduceMin": lambda x, axes, keep: x.amin(axes, keep),
    "ReduceProd": _product,
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keep),
    "ReduceSumSquare": lambda x, axes, keep: x.square().sum(axes, keep),
}


def _reduction(name: str) -> Rule:
    function = _REDUCTIONS[name]

    def rule(form: NodeForm) -> Computation:
        given, keep = form.numbers(1), bool(form.attribute("keepdims", 1))
        if not given and form.attribute("noop_with_empty_axes", 0):
            form.require(name not in ("ReduceL1", "ReduceL2", "ReduceSumSquare"), "over no axes")
            return lambda x, *_: x

        def run(x: Tensor, *_: Tensor) -> Tensor:
            if not x.dim():
                return function(x.reshape(1), [0], False).to(x.dtype)
            axes = [axis % x.dim() for axis in given] if given else list(range(x.dim()))
            return function(x, axes, keep).to(x.dtype)

        return run

    return rule


def _pad(form: NodeForm) -> Computation:
    """Torch lists the last axis first, what is before and after it side by side."""
    form.require(form.text("mode", "constant") == "constant", f'with mode "{form.text("mode", "")}"')
    pads, axes = form.numbers(1) or [], form.numbers(3)

    def run(x: Tensor, _: Tensor, value: Tensor = None, *__: Tensor) -> Tensor:
        around = [[0, 0] for _ in range(x.dim())]
        for index, axis in enumerate(range(x.dim()) if axes is None else axes):
            around[axis] = [pads[index], pads[index + len(pads) // 2]]
        flat = [number for pair in reversed(around) for number in pair]
        return torch.nn.functional.pad(x, flat, value=0 if value is None else value.item())

    return run


def _shape(form: NodeForm) -> Computation:
    part = slice(form.attribute("start", 0), form.attribute("end", None))
    return lambda x: torch.tensor(list(x.shape[part]), dtype=torch.int64, device=x.device)


def _size(_: NodeForm) -> Computation:
    return lambda x: torch.tensor(x.numel(), dtype=torch.int64, device=x.device)


SHAPES: Mapping[str, Rule] = {
    "Concat": _concat,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Pad": _pad,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    **{name: _reduction(name) for name in _REDUCTIONS},
}
"""Rules by name of the operator."""

FIXED_INPUTS: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("Expand", "Reshape", "Split", "Squeeze", "Unsqueeze", *_REDUCTIONS), (1,)),
    "Pad": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
}
"""Positions of inputs that must be known before the run."""
