"""What onnxruntime compiles to: a session with a binding that is kept from call to call.

The binding holds addresses only: nothing here keeps an array of a call alive after it. Memory that is gone
may still be bound between two calls; `run` binds anew what does not lie where it is bound.
"""

from __future__ import annotations

import ctypes
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from intarsia.runtime.clones import source_on_threads
from intarsia.runtime.kernel import Array, Kernel, KernelSource, Value
from intarsia.support.array_address import array_address
from intarsia.support.errors import CompileError, ExecutionError, UsageError
from intarsia.support.forks import prevent_destruction, reset_in_children
from intarsia.target import Target
from intarsia.toolchain.bound_memory import BoundMemory
from intarsia.toolchain.delivery import deliver_all
from intarsia.toolchain.input_identity import put_identity_behind_inputs
from intarsia.toolchain.onnx_port import Port, bindable, input_ports, output_ports, parse_model, refuse_packed
from intarsia.toolchain.onnxruntime.forests import refuse_mislabelled_forests
from intarsia.toolchain.onnxruntime.message import onnxruntime_message
from intarsia.toolchain.onnxruntime.session import create_session

if TYPE_CHECKING:
    from intarsia.toolchain.onnxruntime.profiler import OnnxruntimeProfiler


def load_kernel(source: KernelSource) -> Kernel:
    """The kernel of a source.

    Raises:
        CompileError: onnxruntime refuses the source.
    """
    return _kernel(source, *_open(source))


def _kernel(
    source: KernelSource,
    session: Any,
    lent: object,
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
) -> BoundKernel | FedKernel:
    if all(port.is_plain for port in (*inputs, *outputs)):
        return BoundKernel(source, session, lent, inputs, outputs)
    return FedKernel(source, session, lent, inputs)


def _clones(kernel: BoundKernel | FedKernel, count: int, threads: int | None) -> list[Kernel]:
    """Kernels that run beside another one; sessions that start no threads take calls of several at once.

    A session with threads of its own for each kernel has packed weights of its own, too.

    Raises:
        CompileError: onnxruntime refuses the source.
    """
    if threads is None or threads == Target(kernel.source.target).option("threads") == 1:
        return [kernel.sharing_session() for _ in range(count)]
    source = source_on_threads(kernel.source, threads)
    first = load_kernel(source)
    assert isinstance(first, (BoundKernel, FedKernel))
    if threads == 1:
        return [first, *_clones(first, count - 1, threads)]
    return [first, *(load_kernel(source) for _ in range(count - 1))]


def start_profiler(source: KernelSource) -> OnnxruntimeProfiler:
    """Start the profiler of a kernel, with a session of its own.

    Raises:
        CompileError: onnxruntime refuses the source.
    """
    from intarsia.toolchain.onnxruntime.profiler import OnnxruntimeProfiler

    folder = tempfile.TemporaryDirectory(prefix="intarsia-profile-")
    try:
        session, lent, inputs, outputs = _open(source, Path(folder.name))
    except CompileError:
        folder.cleanup()
        raise
    return OnnxruntimeProfiler(_kernel(source, session, lent, inputs, outputs), session, folder)


def _open(
    source: KernelSource, profile_folder: Path | None = None
) -> tuple[Any, object, tuple[Port, ...], tuple[Port, ...]]:
    """Create the session of a source; also what it borrows, and its ports."""
    model = parse_model(source, "onnxruntime")
    refuse_mislabelled_forests(model.graph)
    if {port.name for port in input_ports(model.graph)} & {port.name for port in output_ports(model.graph)}:
        # onnxruntime 1.31 leaves the buffer untouched that is bound for an output that is an input
        put_identity_behind_inputs(model.graph)
    inputs, outputs = input_ports(model.graph), output_ports(model.graph)
    refuse_packed("onnxruntime", (*inputs, *outputs))
    session, lent = create_session(model, source, profile_folder)
    return session, lent, inputs, outputs


class BoundKernel:
    """A session whose inputs and outputs are all arrays: they are bound, and used where they are."""

    def __init__(
        self,
        source: KernelSource,
        session: Any,
        lent: object,
        inputs: tuple[Port, ...],
        outputs: tuple[Port, ...],
    ) -> None:
        self.source = source
        self._input_ports = inputs
        self._output_ports = outputs
        self._is_of_parent = False
        self._use(session, lent)
        reset_in_children(self)

    def _use(self, session: Any, lent: object) -> None:
        self._session: Any = session
        self._lent: object = lent
        self._binding = session.io_binding()
        self._bound_inputs = tuple(BoundMemory() for _ in self._input_ports)
        self._bound_outputs = tuple(BoundMemory() for _ in self._output_ports)

    def reset_in_child(self) -> None:
        """Leave the session to the parent, which has its threads; the next run creates one."""
        if self._session is not None:
            prevent_destruction(self._session)
            prevent_destruction(self._binding)
            self._is_of_parent = True

    def blob(self) -> bytes | None:
        """None: a session is quickly made from its source."""
        return None

    def start_profiler(self) -> OnnxruntimeProfiler:
        """As `ProfilableKernel.start_profiler`."""
        return start_profiler(self.source)

    def sharing_session(self) -> BoundKernel:
        """Return a kernel with a binding of its own to this one's session."""
        self._adopt_session()
        return BoundKernel(self.source, self._session, self._lent, self._input_ports, self._output_ports)

    def clones(self, count: int, threads: int | None = None) -> Sequence[Kernel]:
        """As `ClonableKernel.clones`."""
        self._adopt_session()
        return _clones(self, count, threads)

    def close(self) -> None:
        """Let go of the session."""
        self._session = self._binding = self._lent = None

    def _adopt_session(self) -> None:
        """Create a session in a forked child."""
        if self._session is None:
            raise UsageError("the kernel is closed")
        if self._is_of_parent:
            self._use(*_open(self.source)[:2])
            self._is_of_parent = False

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`; what lies where it lay on the last call is not bound again."""
        self._adopt_session()
        for position, value in enumerate(inputs):
            if not self._bound_inputs[position].is_at(value):
                self._bind_input(position, value)
        targets = [self._bind_output(position, given) for position, given in enumerate(outputs)]
        try:
            self._session.run_with_iobinding(self._binding)
        except Exception as error:  # onnxruntime has no common base class for its exceptions
            raise ExecutionError(f"onnxruntime failed: {onnxruntime_message(error)}") from error
        if any(item is None for item in targets):
            found = self._binding.get_outputs()
            return [self._copied(found, n) if item is None else item for n, item in enumerate(targets)]
        return list(targets)

    def _bind_input(self, position: int, value: Value) -> None:
        port, bound = self._input_ports[position], self._bound_inputs[position]
        array = bindable(value, port)
        address = array_address(array)
        bound.forget()  # until it is bound: onnxruntime may refuse
        self._binding.bind_input(port.name, "cpu", 0, port.element_type, array.shape, address)
        bound.note(array, address)

    def _bind_output(self, position: int, given: Array | None) -> Array | None:
        """Bind the given array, or one made here; None where the shape is not known before the run."""
        port, bound = self._output_ports[position], self._bound_outputs[position]
        if given is None and port.shape is not None:
            given = np.empty(port.shape, port.dtype)
        if given is None:
            # Bound anew for each run: onnxruntime would write a result of another shape into the last one.
            bound.forget()
            self._binding.bind_output(port.name, "cpu", 0)
        elif not bound.is_at(given):
            array = bindable(given, port)
            address = array_address(array)
            bound.forget()
            self._binding.bind_output(port.name, "cpu", 0, port.element_type, array.shape, address)
            bound.note(array, address)
        return given

    def _copied(self, found: Sequence[Any], position: int) -> Array:
        """A result that onnxruntime allocated; its own `numpy()` does not know bfloat16 and float8."""
        value, dtype = found[position], self._output_ports[position].dtype
        assert dtype is not None
        shape = tuple(value.shape())
        if math.prod(shape) == 0:
            return np.empty(shape, dtype)
        memory = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(value.data_ptr())
        return np.frombuffer(memory, dtype).reshape(shape).copy()


class FedKernel:
    """A session with strings, sequences or optionals at its border: inputs are fed, results are copied."""

    def __init__(self, source: KernelSource, session: Any, lent: object, inputs: tuple[Port, ...]) -> None:
        self.source = source
        self._session = session
        self._lent = lent
        self._inputs = inputs
        self._names = tuple(port.name for port in inputs)
        self._is_of_parent = False
        reset_in_children(self)

    def reset_in_child(self) -> None:
        """Leave the session to the parent, which has its threads; the next run creates one."""
        if self._session is not None:
            prevent_destruction(self._session)
            self._is_of_parent = True

    def blob(self) -> bytes | None:
        """None: a session is quickly made from its source."""
        return None

    def start_profiler(self) -> OnnxruntimeProfiler:
        """As `ProfilableKernel.start_profiler`."""
        return start_profiler(self.source)

    def sharing_session(self) -> FedKernel:
        """Return a kernel on this one's session."""
        self._adopt_session()
        return FedKernel(self.source, self._session, self._lent, self._inputs)

    def clones(self, count: int, threads: int | None = None) -> Sequence[Kernel]:
        """As `ClonableKernel.clones`."""
        self._adopt_session()
        return _clones(self, count, threads)

    def close(self) -> None:
        """Let go of the session."""
        self._session = self._lent = None

    def _adopt_session(self) -> None:
        """Create a session in a forked child."""
        if self._session is None:
            raise UsageError("the kernel is closed")
        if self._is_of_parent:
            self._session, self._lent = _open(self.source)[:2]
            self._is_of_parent = False

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`."""
        self._adopt_session()
        try:
            results = self._session.run(None, dict(zip(self._names, inputs, strict=True)))
        except Exception as error:  # onnxruntime has no common base class for its exceptions
            raise ExecutionError(f"onnxruntime failed: {onnxruntime_message(error)}") from error
        return deliver_all(results, outputs)
