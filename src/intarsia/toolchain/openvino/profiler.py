"""The profiler of OpenVINO: a compiled model of its own with `PERF_COUNT`.

OpenVINO keeps the mean time of each node over all runs since it was compiled, in whole microseconds, and no
start times. So every run gets the means of the runs that count, scaled to the time of that run, one node
after the other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

from intarsia.runtime.kernel import Array, Kernel, Value
from intarsia.runtime.kernel_profiler import KernelEvent, KernelRuns
from intarsia.toolchain.source_graph import EngineKernel, SourceGraph
from intarsia.toolchain.source_work import describe_kernels

_NOTE: Final = "openvino reports means over all runs, cut to whole microseconds: they are scaled to each run"
_REORDER: Final = "Reorder"
_PRODUCTS: Final = frozenset({"MatMul", "Gemm"})
_OPERATORS: Final = {
    "Convolution": frozenset({"Conv"}),
    "Deconvolution": frozenset({"ConvTranspose"}),
    "FullyConnected": _PRODUCTS,
    "MatMul": _PRODUCTS,
}
"""ONNX's operators of OpenVINO's products, which it names after what it fuses with them."""


@dataclass(frozen=True, slots=True)
class NodeTime:
    """The mean time of a node.

    Attributes:
        name: Name of the node in the executed graph.
        operator: Type of the node, as OpenVINO calls it.
        kernel: Implementation that OpenVINO has chosen, such as "brgconv_avx2_f32".
        microseconds: Mean time over all runs, in whole microseconds.
    """

    name: str
    operator: str
    kernel: str
    microseconds: int


class CountingKernel(Kernel, Protocol):
    """A kernel of a model that is compiled with performance counters."""

    def node_times(self) -> Sequence[Any]:
        """Return OpenVINO's `ProfilingInfo` of each node."""

    def close(self) -> None:
        """Release the model."""


class OpenVinoProfiler:
    """Runs a model that is compiled with performance counters.

    Args:
        kernel: Kernel of the compiled model.
        compiled: OpenVINO's `CompiledModel`.
    """

    def __init__(self, kernel: CountingKernel, compiled: Any) -> None:
        self._kernel = kernel
        self._compiled = compiled
        self._spans: list[tuple[int, int]] = []
        self._forgotten = 0
        self._before: Sequence[NodeTime] = ()

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `KernelProfiler.run`."""
        start = time.perf_counter_ns()
        results = self._kernel.run(inputs, outputs)
        self._spans.append((start, time.perf_counter_ns()))
        return results

    def forget_runs(self) -> None:
        """As `KernelProfiler.forget_runs`."""
        self._forgotten = len(self._spans)
        self._before = self._node_times()

    def stop(self) -> KernelRuns:
        """As `KernelProfiler.stop`."""
        graph = SourceGraph.of(self._kernel.source)
        times = mean_nanoseconds(self._node_times(), self._before, len(self._spans), self._forgotten)
        layers = _source_layers(self._compiled)
        kernels = [_kernel(node, layers.get(node.name, (node.name,)), graph) for node, _ in times]
        self._kernel.close()
        runs = scaled_events([mean for _, mean in times], self._spans[self._forgotten :])
        return KernelRuns(describe_kernels(self._kernel.source, kernels), runs, (_NOTE,))

    def _node_times(self) -> Sequence[NodeTime]:
        return [
            NodeTime(info.node_name, info.node_type, info.exec_type, _microseconds(info.real_time))
            for info in self._kernel.node_times()
        ]


def _microseconds(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1e6)


def mean_nanoseconds(
    after: Sequence[NodeTime], before: Sequence[NodeTime], runs: int, forgotten: int
) -> list[tuple[NodeTime, int]]:
    """Return the nodes that took time, with their mean nanoseconds over the runs that are not forgotten.

    Args:
        after: Means over all runs.
        before: Means over the forgotten runs; none if there are none.
        runs: Number of all runs.
        forgotten: Number of forgotten runs.
    """
    forgotten_times = {node.name: node.microseconds * forgotten for node in before}
    means = []
    for node in after:
        total = node.microseconds * runs - forgotten_times.get(node.name, 0)
        if total > 0 and runs > forgotten:
            means.append((node, round(1000 * total / (runs - forgotten))))
    return means


def _source_layers(compiled: Any) -> dict[str, tuple[str, ...]]:
    """Return the names of the layers of the model that are fused in each executed node."""
    layers = {}
    for node in compiled.get_runtime_model().get_ordered_ops():
        info: Mapping[str, Any] = node.get_rt_info()
        if "originalLayersNames" in info:
            text = info["originalLayersNames"].astype(str)
            layers[node.get_friendly_name()] = tuple(name for name in text.split(",") if name)
    return layers


def _kernel(node: NodeTime, layers: Sequence[str], graph: SourceGraph) -> EngineKernel:
    names = frozenset(
        name if name in graph.nodes else graph.written[name]
        for name in layers
        if name in graph.nodes or name in graph.written
    )
    is_conversion = node.operator == _REORDER or not names
    members = frozenset[str]() if node.operator == _REORDER else names
    operators = _OPERATORS.get(node.operator, frozenset[str]())
    return EngineKernel(f"{node.operator} {node.kernel}", members, operators, is_conversion)


def scaled_events(
    means: Sequence[int], spans: Sequence[tuple[int, int]]
) -> tuple[tuple[KernelEvent, ...], ...]:
    """Return the events of each run: mean times, longer in a longer run, one node after the other.

    Args:
        means: Mean nanoseconds of each node.
        spans: Start and end of each run in nanoseconds.
    """
    whole = sum(end - start for start, end in spans)
    return tuple(
        _events(start, [mean * (end - start) * len(spans) / whole for mean in means]) for start, end in spans
    )


def _events(start: int, lengths: Sequence[float]) -> tuple[KernelEvent, ...]:
    events = []
    for number, length in enumerate(lengths):
        end = start + round(length)
        events.append(KernelEvent(number, start, end))
        start = end
    return tuple(events)
