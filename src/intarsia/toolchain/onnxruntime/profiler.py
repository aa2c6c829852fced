"""The profiler of onnxruntime: a session of its own with `enable_profiling`."""

from __future__ import annotations

import json
import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from intarsia.runtime.kernel import Array, ClosableKernel, Kernel, Value
from intarsia.runtime.kernel_profiler import KernelEvent, KernelRuns
from intarsia.toolchain.onnxruntime.optimized_nodes import kernels_of
from intarsia.toolchain.onnxruntime.session import optimized_model
from intarsia.toolchain.source_graph import SourceGraph
from intarsia.toolchain.source_work import describe_kernels

_SUFFIX: Final = "_kernel_time"
_MICROSECOND: Final = 1000


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """A node of the optimised model in one run.

    Attributes:
        name: Name of the node.
        operator: Operator type of the node.
        start: Start in microseconds of the profile.
        duration: Duration in microseconds.
    """

    name: str
    operator: str
    start: int
    duration: int

    @property
    def key(self) -> tuple[str, str]:
        """What events of one node have in common."""
        return self.name, self.operator


class OnnxruntimeProfiler:
    """Runs a model in a profiled session.

    Args:
        kernel: Kernel with the session.
        session: The session.
        folder: Folder that the session writes to; removed at the end.
    """

    def __init__(self, kernel: Kernel, session: Any, folder: TemporaryDirectory[str]) -> None:
        self._kernel = kernel
        self._session = session
        self._folder = folder
        self._starts: list[int] = []
        self._forgotten = 0

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `KernelProfiler.run`."""
        self._starts.append(time.perf_counter_ns())
        return self._kernel.run(inputs, outputs)

    def forget_runs(self) -> None:
        """As `KernelProfiler.forget_runs`."""
        self._forgotten = len(self._starts)

    def stop(self) -> KernelRuns:
        """As `KernelProfiler.stop`."""
        with self._folder:
            runs = node_events(json.loads(Path(self._session.end_profiling()).read_text()))
            optimized = optimized_model(Path(self._folder.name))
        if isinstance(self._kernel, ClosableKernel):
            self._kernel.close()
        order = list(dict.fromkeys(event.key for run in runs for event in run))
        graph = SourceGraph.of(self._kernel.source)
        kernels = describe_kernels(self._kernel.source, kernels_of(order, optimized.graph, graph))
        numbers = {key: number for number, key in enumerate(order)}
        pairs = zip(self._starts[self._forgotten :], runs[self._forgotten :], strict=False)
        return KernelRuns(kernels, tuple(_kernel_events(run, start, numbers) for start, run in pairs))


def node_events(events: Iterable[Mapping[str, Any]]) -> list[list[NodeEvent]]:
    """Return the events of the nodes of each run of a session; nodes inside of others are left out.

    Args:
        events: Events of a profile that onnxruntime has written.
    """
    listed = list(events)
    starts = sorted(int(event["ts"]) for event in listed if event["name"] == "model_run")
    runs: list[list[NodeEvent]] = [[] for _ in starts]
    nodes = [event for event in listed if event["cat"] == "Node" and event["name"].endswith(_SUFFIX)]
    end = -1
    # Longer events first where two start at once: bodies of control flow lie within their node.
    for event in sorted(nodes, key=lambda event: (event["ts"], -event["dur"])):
        start, duration = int(event["ts"]), int(event["dur"])
        if start < end and start + duration <= end:
            continue
        end = start + duration
        name = event["name"].removesuffix(_SUFFIX)
        run = bisect_right(starts, start) - 1
        if run >= 0:
            runs[run].append(NodeEvent(name, event["args"].get("op_name", ""), start, duration))
    return runs


def _kernel_events(
    run: Sequence[NodeEvent], begin: int, numbers: Mapping[tuple[str, str], int]
) -> tuple[KernelEvent, ...]:
    """Return the events on the clock of this process; the first node starts with the run."""
    first = run[0].start if run else 0
    events = []
    for event in run:
        start = begin + (event.start - first) * _MICROSECOND
        events.append(KernelEvent(numbers[event.key], start, start + event.duration * _MICROSECOND))
    return tuple(events)
