"""Models compiled by OpenVINO: precision, threads, weights, and the compiled form as bytes.

Precision. f32 is computed as f32 unless the target says otherwise: bfloat16 or float16 arithmetic is another
function, which is right within a bound that only the user can state (`-inference_precision`).

Threads. A stream has `threads` threads; clones of a kernel have a stream each, others have one. No pinning:
it would set the affinity of the threads of this process, which other engines share, and gained nothing here
(benchmarks/thread_policy.py).

Weights. OpenVINO reads an external initializer of the location `*/_ORT_MEM_ADDR_/*` from memory, offset
being the address, and copies it once. So the model never holds the weights as protobuf (limit: 2 GB).
The address is always one of an array of the source: locations that the model names are replaced, and
`parse_model` refuses external tensors that are no initializers, whose locations OpenVINO would follow.
"""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.external_weights import (
    external_tensors,
    is_lendable,
    point_at,
    put_inline,
    weight_of,
)
from intarsia.toolchain.input_identity import put_identity_behind_inputs, used_names
from intarsia.toolchain.onnx_port import input_ports
from intarsia.toolchain.openvino.message import openvino_message
from intarsia.toolchain.openvino.properties import model_options

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, ValueInfoProto

_IN_MEMORY = "*/_ORT_MEM_ADDR_/*"

_LEAST_CACHED: Final = 256
"""Entries of the cache of code for shapes that every model with symbolic dimensions gets."""
_CACHED_OF_OPERATOR: Final = 4
"""Entries for each operator besides."""
_MOST_CACHED: Final = 5000
"""Entries that OpenVINO has without a limit."""


def compile_model(
    model: ModelProto, source: KernelSource, *, is_profiled: bool = False, streams: int = 1
) -> Any:
    """Compile a source to OpenVINO's `CompiledModel`.

    Args:
        model: The source's model; changed where its weights are given to it.
        source: Weights and target.
        is_profiled: Whether OpenVINO counts the time of each node.
        streams: Number of requests that run at the same time, each on the threads of the target.

    Raises:
        CompileError: OpenVINO refuses it.
    """
    options = _options(source, model) | ({"PERF_COUNT": "YES"} if is_profiled else {})
    threads = int(options["INFERENCE_NUM_THREADS"])
    options |= {"NUM_STREAMS": str(streams), "INFERENCE_NUM_THREADS": str(streams * threads)}
    _give_weights(model, source)
    try:
        read = _core().read_model(model.SerializeToString())
        if _loses_input_names(read, model.graph):
            put_identity_behind_inputs(model.graph)
            read = _core().read_model(model.SerializeToString())
        _refuse_dynamic_on_one_thread(read, threads)
        return _core().compile_model(read, "CPU", options)
    except CompileError:
        raise
    except Exception as error:  # OpenVINO has no common base class for its exceptions
        raise CompileError(f"openvino cannot compile this: {openvino_message(error)}") from error


def export_model(compiled: Any) -> bytes:
    """The compiled form; `import_model` reads it with the same version of OpenVINO on such a CPU."""
    exported = compiled.export_model()
    return exported.getvalue() if isinstance(exported, io.BytesIO) else bytes(exported)


def import_model(blob: bytes, model: ModelProto, source: KernelSource) -> Any | None:
    """The `CompiledModel` that was exported; None if the blob is damaged or of another version."""
    try:
        return _core().import_model(blob, "CPU", _options(source, model))
    except RuntimeError:
        return None


def _options(source: KernelSource, model: ModelProto) -> dict[str, str]:
    """Return OpenVINO's properties for a source; the cache of code for shapes has a limit.

    OpenVINO generates code for each new shape and keeps it: a thousand shapes of a small network took 300
    MiB more, and its own limit of 5000 entries was not reached. This one is enough for dozens of shapes of
    any network.
    """
    options = model_options(Target(source.target))
    if any(port.type.tensor_type.HasField("shape") and _is_open(port) for port in model.graph.input):
        operators = len(model.graph.node)
        options["CPU_RUNTIME_CACHE_CAPACITY"] = str(
            min(_LEAST_CACHED + _CACHED_OF_OPERATOR * operators, _MOST_CACHED)
        )
    return options


def _is_open(port: ValueInfoProto) -> bool:
    return any(not dim.HasField("dim_value") for dim in port.type.tensor_type.shape.dim)


def _refuse_dynamic_on_one_thread(read: Any, threads: int) -> None:
    """Refuse what may end the process.

    On one thread OpenVINO 2026.4 loses the error of an operator whose shapes do not fit, and goes on with
    tensors that were never allocated: Add of 3 and 4 elements is a segmentation fault. On two threads the
    error is raised. Threads beyond the cores that the process may use do not count: they do not exist.
    """
    if read.is_dynamic() and min(threads, usable_cores(Path("/"))) < 2:
        raise CompileError(
            "openvino cannot compile this: on one thread, shapes known only at run time are unsafe",
            help="fix the shapes of the model, or allow two threads",
        )


def _loses_input_names(read: Any, graph: GraphProto) -> bool:
    """Whether an operator that OpenVINO's ONNX frontend drops (Dropout, Sum of one value) has taken a name.

    The input behind it is then called as the operator's result was.
    """
    known = {name for port in read.inputs for name in port.names}
    used = used_names(graph)
    return any(port.name in used and port.name not in known for port in input_ports(graph))


def returns_an_input(compiled: Any) -> bool:
    """Whether, after all of OpenVINO's transformations, a result of a compiled model is an input as it is.

    OpenVINO 2026.4 does not write such a result into a buffer that it is given; it may even copy the buffer
    *into the input*. Examples: Einsum "i->i", Dropout, an output that is an input.
    """
    results = compiled.get_runtime_model().get_results()
    return any(result.input_value(0).get_node().get_type_name() == "Parameter" for result in results)


@cache
def _core() -> Any:
    """OpenVINO's plugin manager, one for the process as OpenVINO requires."""
    import openvino

    return openvino.Core()


def _give_weights(model: ModelProto, source: KernelSource) -> None:
    inline = []
    for tensor in external_tensors(model.graph):
        array = weight_of(tensor, source.weights)
        if is_lendable(array):
            point_at(tensor, _IN_MEMORY, array.ctypes.data, array.nbytes)
        else:
            inline.append(tensor)
    put_inline(inline, source.weights)
