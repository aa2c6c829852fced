"""What a toolchain reports of the kernels inside its engine: names, nodes, work, and times of each run.

A kernel of a plan is a whole region, in which an engine runs kernels of its own. A toolchain that can time
these gives its kernels the method `start_profiler`; of others a profile has one row for each kernel of the
plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from intarsia.runtime.kernel import Array, Value


@dataclass(frozen=True, slots=True)
class SourceNode:
    """A node of the model that a kernel computes.

    Attributes:
        name: Name of the node (`Span.node`).
        operator: Operator type of the node.
    """

    name: str
    operator: str

    @property
    def module(self) -> str:
        """The path of the node's name without its last part; "" if the name has one part only."""
        return self.name.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class KernelWork:
    """The work of one call of a kernel.

    Attributes:
        flop: Floating-point operations of its convolutions and matrix products; a multiply-add counts as two.
        bytes: Bytes of the tensors that enter and leave it, weights included.
        bound: Least seconds of a call by the roofline of this machine; None if that cannot be measured.
    """

    flop: int
    bytes: int
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class ProfiledKernel:
    """A kernel of an engine at its place in the program.

    Attributes:
        name: Name of the kernel's code; several places may have one.
        nodes: Nodes of the model that it computes, in order of the model; empty if it computes none.
        anchor: Node with most of the work; None if there are no nodes.
        work: Work of one call; None if it is not known.
        is_conversion: Whether it converts or packs a value for another kernel, which no node says.
    """

    name: str
    nodes: tuple[SourceNode, ...] = ()
    anchor: SourceNode | None = None
    work: KernelWork | None = None
    is_conversion: bool = False


@dataclass(frozen=True, slots=True)
class ThreadPart:
    """A part of a kernel's work on one thread.

    Attributes:
        worker: Number of the worker thread, from 1; 0 for the calling thread.
        start: Start in nanoseconds of `time.perf_counter_ns`.
        end: End in nanoseconds of that clock.
    """

    worker: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class KernelEvent:
    """One call of a kernel.

    Attributes:
        kernel: Index of the kernel in `KernelRuns.kernels`.
        start: Start in nanoseconds of `time.perf_counter_ns`.
        end: End in nanoseconds of that clock.
        parts: Its parts on threads, if the engine reports them.
    """

    kernel: int
    start: int
    end: int
    parts: tuple[ThreadPart, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelRuns:
    """The kernels of an engine and when they ran.

    Attributes:
        kernels: Kernels in the order in which they run.
        runs: Calls of kernels in each run of the engine.
        notes: Sentences about limits of the engine's profiler.
    """

    kernels: tuple[ProfiledKernel, ...]
    runs: tuple[tuple[KernelEvent, ...], ...]
    notes: tuple[str, ...] = ()


class KernelProfiler(Protocol):
    """Runs the computation of a kernel and records the times of the engine's kernels."""

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """Compute the outputs, as `Kernel.run`."""

    def forget_runs(self) -> None:
        """Forget the runs until now, which were made to warm up."""

    def stop(self) -> KernelRuns:
        """Return the times of the runs and release what the profiler holds; called once."""


@runtime_checkable
class ProfilableKernel(Protocol):
    """A kernel whose toolchain can time the kernels inside it."""

    def start_profiler(self) -> KernelProfiler:
        """Start a profiler, which leaves the kernel itself as fast as it is.

        Raises:
            CompileError: The engine refuses to be profiled.
        """
