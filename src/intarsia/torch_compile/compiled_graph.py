"""The function of a graph that dynamo calls: one executable for each set of weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import torch

from intarsia.frontend.torch.tensors import as_array, as_tensor
from intarsia.runtime.executable import Executable
from intarsia.support.errors import InputError, IntarsiaError
from intarsia.torch_compile.fallback import warn
from intarsia.torch_compile.first_call import FirstCall
from intarsia.torch_compile.graph_inputs import GraphInput
from intarsia.torch_compile.lowered_graph import LoweredGraph
from intarsia.torch_compile.programs import Programs

MAX_VARIANTS: Final = 64
"""Sets of weights with an executable of their own. Dynamo compiles equal layers once and passes each one's
weights, so that there are as many as a model has layers."""

MAX_CHANGES: Final = 1
"""Changes of a weight in place after which a new executable has it as a constant; later it is an input."""


@dataclass(frozen=True, slots=True)
class _Variant:
    """An executable for a set of weights.

    Attributes:
        weights: Position, tensor and version of each weight that is a constant of the executable.
        run: Function of the graph's arguments.
    """

    weights: tuple[tuple[int, Any, int], ...]
    run: Callable[[Sequence[Any]], Any]

    def has_tensors(self, args: Sequence[Any]) -> bool:
        return all(args[position] is weight for position, weight, _ in self.weights)

    def changed(self) -> list[int]:
        """Positions of weights that were written to since they became constants."""
        return [position for position, weight, version in self.weights if weight._version != version]


class CompiledGraph:
    """A function of the arguments of a graph of dynamo, which returns its results.

    Weights are constants of the executable. Before each call they are compared with the arguments: by
    identity, and by the version that PyTorch counts up when a tensor is written to.

    Args:
        graph: The graph.
        programs: Builder of its executables.
        eager: The graph in PyTorch's eager mode.
        args: Arguments of the first call.

    Raises:
        CompileError: No toolchain takes the graph.
    """

    def __init__(
        self, graph: LoweredGraph, programs: Programs, eager: Callable[..., Any], args: Sequence[Any]
    ) -> None:
        self._graph = graph
        self._programs = programs
        self._eager = eager
        self._changes: Counter[int] = Counter()
        self._variants: list[_Variant] = []
        self._current = self._new_variant(args, self._first_call(args))
        self._variants.append(self._current)

    def __call__(self, *args: Any) -> Any:
        """Run the graph. Results share no memory with those of other calls."""
        variant = self._current
        for position, weight, version in variant.weights:
            if args[position] is not weight or weight._version != version:
                variant = self._current = self._variant_for(args)
                break
        return variant.run(args)

    def _variant_for(self, args: Sequence[Any]) -> _Variant:
        """Return the variant of the weights among the arguments; another one if they are new or changed."""
        for variant in list(self._variants):
            if variant.has_tensors(args):
                changed = variant.changed()
                if not changed:
                    return variant
                self._variants.remove(variant)
                self._changes.update(changed)
        variant = self._new_variant(args)
        # One without weights fits all arguments: it is the last resort.
        self._variants.insert(0 if variant.weights else len(self._variants), variant)
        return variant

    def _new_variant(self, args: Sequence[Any], first: FirstCall | None = None) -> _Variant:
        constants = (
            [] if self._is_full() else [item for item in self._graph.inputs if self._is_constant(item)]
        )
        weights = tuple(
            (item.position, args[item.position], args[item.position]._version) for item in constants
        )
        try:
            module = self._graph.bind({item.name: args[item.position] for item in constants})
            if first is not None:
                executable = self._programs.build_first(module, first)
            else:
                executable = self._programs.build_again(module)
        except IntarsiaError as error:
            if first is not None:
                raise
            warn(f"a graph runs in eager mode: {error.problem}", error.help)
            return _Variant(weights, lambda args: self._eager(*args))
        variable = [item for item in self._graph.inputs if item not in constants]
        return _Variant(weights, _Runner(executable, variable, self._graph, self._eager).run)

    def _is_full(self) -> bool:
        if len(self._variants) < MAX_VARIANTS:
            return False
        warn(
            f"a graph was called with {MAX_VARIANTS} sets of weights; further ones are passed as inputs, "
            "which is slower"
        )
        return True

    def _is_constant(self, item: GraphInput) -> bool:
        is_written = any(item.position == other.position for other in self._graph.written)
        return item.is_weight and not is_written and self._changes[item.position] <= MAX_CHANGES

    def _first_call(self, args: Sequence[Any]) -> FirstCall:
        variable = [item for item in self._graph.inputs if not self._is_constant(item)]
        arrays = {item.name: _input_array(args[item.position]) for item in variable}
        return FirstCall(arrays, partial(self._expected, args))

    def _expected(self, args: Sequence[Any], is_changed: bool) -> list[Any]:
        """Results of the program as PyTorch computes them, from arguments that differ slightly or not."""
        given = [_differing(value) for value in args] if is_changed else args
        return [as_array(tensor) for tensor in self._graph.compute(given)]


class _Runner:
    """Runs an executable on tensors, without copies of them."""

    def __init__(
        self,
        executable: Executable,
        inputs: Sequence[GraphInput],
        graph: LoweredGraph,
        eager: Callable[..., Any],
    ) -> None:
        self._executable = executable
        self._positions = [item.position for item in inputs]
        self._written = [item.position for item in graph.written]
        self._views = graph.results.views
        self._eager = eager

    def run(self, args: Sequence[Any]) -> Any:
        """Return the results for the arguments of the graph."""
        arrays = [_input_array(args[position]) for position in self._positions]
        try:
            outputs = self._executable.run_flat(*arrays)
        except InputError as error:  # a size that the exporter has taken for a constant
            warn(f"a call runs in eager mode: {error.problem}", error.help)
            return self._eager(*args)
        results = tuple([as_tensor(array) for array in outputs])  # type: ignore[arg-type]  # tensors only
        count = len(self._written)
        for position, value in zip(self._written, results[:count], strict=True):
            args[position].copy_(value)
        return results[count:] if self._views is None else self._views(*args, *results[count:])


def _input_array(value: Any) -> Any:
    """The array of an argument: over the memory of a tensor, or of a number."""
    if isinstance(value, int):
        return np.asarray(value, np.int64)
    return as_array(value)


def _differing(value: Any) -> Any:
    """A tensor of floats that differs from another in the last bits of each element."""
    if not (isinstance(value, torch.Tensor) and value.is_floating_point()):
        return value
    signs = torch.arange(value.numel()).remainder_(2).mul_(2).sub_(1).reshape(value.shape)
    return value.detach() * (1 + signs * (2 * torch.finfo(value.dtype).eps)).to(value.dtype)
