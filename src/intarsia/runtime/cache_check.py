"""Check that the cache of a plan names inputs and outputs that it has, of the forms that a sequence needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from intarsia.runtime.plan import ExecutionPlan, TensorInfo
from intarsia.runtime.tensor_info import is_tensor


def cache_complaint(plan: ExecutionPlan) -> str:
    """Return the first defect of a plan's cache, or the empty string."""
    cache = plan.cache
    if cache is None:
        return ""
    if not cache.states or not cache.capacities or not cache.token_inputs:
        return "its cache has no states, capacities or inputs of tokens"
    for sizes in (cache.capacities, cache.chunks):
        if list(sizes) != sorted(set(sizes)) or 0 in sizes:
            return "its cache has sizes that are not ascending"
    inputs, outputs = ({info.name: info for info in infos} for infos in (plan.inputs, plan.outputs))
    for infos, name, axis in _named_axes(plan, inputs, outputs):
        info = infos.get(name)
        if info is None or not is_tensor(info) or info.shape is None or axis >= len(info.shape):
            return f'its cache uses axis {axis} of "{name}", which is not there'
    return ""


def _named_axes(
    plan: ExecutionPlan, inputs: Mapping[str, TensorInfo], outputs: Mapping[str, TensorInfo]
) -> Iterator[tuple[Mapping[str, TensorInfo], str, int]]:
    """Return the names of a cache, each with the table that must contain it and an axis that it has."""
    cache = plan.cache
    assert cache is not None
    for state in cache.states:
        yield inputs, state.input, state.axis
        yield outputs, state.output, state.axis
    yield from ((inputs, name, axis) for name, axis in cache.token_inputs)
    yield from ((outputs, name, axis) for name, axis in cache.token_outputs)
    rows = ((cache.mask, 1), (cache.positions, 1), (cache.length, 0))
    yield from ((inputs, name, axis) for name, axis in rows if name)
