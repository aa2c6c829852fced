"""What torch compiles to: the operators of a graph, called one by one or as one program of torch.compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from intarsia.runtime.clones import source_on_threads
from intarsia.runtime.kernel import Array, Kernel, KernelSource, Value
from intarsia.support.errors import ExecutionError, UsageError
from intarsia.support.forks import reset_in_children
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.delivery import deliver
from intarsia.toolchain.onnx_port import Port, input_ports, output_ports, parse_model
from intarsia.toolchain.package import exception_text
from intarsia.toolchain.torch.graph import TorchGraph
from intarsia.toolchain.torch.rule import Computation, Tensor, refusal
from intarsia.toolchain.torch.types import as_tensor, torch_dtype_of

if TYPE_CHECKING:
    from intarsia.toolchain.whole_profiler import WholeProfiler


def load_kernel(source: KernelSource, kernel_type: type[TorchKernel] | None = None) -> Kernel:
    """The kernel of a source.

    Args:
        source: The source.
        kernel_type: Class of the kernel; that for the CPU if not given.

    Raises:
        CompileError: An operator has no rule, or a form that its rule does not cover.
    """
    graph = parse_model(source, "torch").graph
    for port in (*input_ports(graph), *output_ports(graph)):
        if port.dtype is None:
            raise refusal(f"{port.name!r} is no tensor")
        torch_dtype_of(port.dtype)
    target = Target(source.target)
    torch_device = place_of(target)
    program: Computation = TorchGraph(graph, source, torch_device)
    threads = target.option("threads", usable_cores(Path("/")))
    if target.option("compiled"):
        options = {"freezing": True, "max_autotune": target.option("max_autotune", False)}
        program = _compiled(program, input_ports(graph), torch_device, threads, options)
        if torch_device.type == "cuda":
            # What it computed of weights was in torch's stream, for which ours does not wait.
            torch.cuda.synchronize()
    return (kernel_type or TorchKernel)(source, program, threads)


def _compiled(
    program: Computation,
    ports: Sequence[Port],
    torch_device: Any,
    threads: int,
    options: Mapping[str, bool],
) -> Computation:
    """A graph as one program, made now where all shapes are known, else when it is called.

    Raises:
        CompileError: torch cannot compile it, for want of a compiler of C++ for example.
    """
    compiled: Computation = torch.compile(program, fullgraph=True, options=dict(options))
    static = [
        (port.shape, torch_dtype_of(port.dtype)) for port in ports if port.shape is not None and port.dtype
    ]
    if len(static) == len(ports):
        examples = [torch.zeros(shape, dtype=dtype, device=torch_device) for shape, dtype in static]
        _use_threads(threads)
        try:
            with torch.no_grad():
                compiled(*examples)
        except Exception as error:  # torch raises whatever its compiler does
            raise refusal(exception_text(error)) from error
    return compiled


def place_of(target: Target) -> Any:
    """Where the tensors of a target's kernels are: a device of torch."""
    return torch.device(target.kind)


class TorchKernel:
    """Calls the operators on arrays."""

    def __init__(self, source: KernelSource, program: Computation, threads: int) -> None:
        self.source = source
        self._program: Computation | None = program
        self._threads = threads
        reset_in_children(self)

    def reset_in_child(self) -> None:
        """Compute on one thread: the threads of OpenMP do not survive a fork, and it starts no others."""
        self._threads = 1

    def blob(self) -> bytes | None:
        """None: it is quickly made from its source."""
        return None

    def start_profiler(self) -> WholeProfiler:
        """As `ProfilableKernel.start_profiler`: one row for all operators."""
        from intarsia.toolchain.whole_profiler import WholeProfiler

        return WholeProfiler(self)

    def clones(self, count: int, threads: int | None = None) -> Sequence[TorchKernel]:
        """As `ClonableKernel.clones`: PyTorch's threads belong to the thread that calls, not to a kernel."""
        if self._program is None:
            raise UsageError("the kernel is closed")
        source, number = source_on_threads(self.source, threads), threads or self._threads
        return [type(self)(source, self._program, number) for _ in range(count)]

    def close(self) -> None:
        """Let go of the weights."""
        self._program = None

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`."""
        given = [as_tensor(cast("Array", value)) for value in inputs]
        results = self.compute(given)
        arrays = [
            tensor.numpy() if output is not None else np.array(tensor.numpy(), order="C")
            for tensor, output in zip(results, outputs, strict=True)
        ]
        return [deliver(array, output) for array, output in zip(arrays, outputs, strict=True)]

    def compute(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The results for tensors on the kernel's device; some may share memory with inputs and weights.

        Raises:
            ExecutionError: An operator failed.
            UsageError: The kernel is closed.
        """
        if self._program is None:
            raise UsageError("the kernel is closed")
        _use_threads(self._threads)
        try:
            with torch.no_grad():
                return list(self._program(*inputs))
        except Exception as error:  # torch raises whatever its operators do
            raise ExecutionError(f"torch failed: {exception_text(error)}") from error


def _use_threads(count: int) -> None:
    """Set how many threads of OpenMP the calling thread uses, whatever OMP_NUM_THREADS says."""
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)
