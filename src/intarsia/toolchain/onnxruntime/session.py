"""Sessions of onnxruntime: options, threads, and weights lent without a copy.

Threads. By default the pool's threads spin for a while after a run, waiting for the next; when another
session or engine runs then, they take its cores: 12 sessions in turn took 72 ms instead of 6, alternating
with OpenVINO 45 instead of 7. `session.force_spinning_stop` ends the spinning with each run, and keeps it
between the operators of one run: on a machine of our own it is nowhere slower than no spinning at all, and
up to 20 % faster on small transformers (benchmarks/thread_policy.py; docs/decisions/0005).

Weights. `add_external_initializers` alone copies every weight (onnxruntime 1.31); given to `add_initializer`
as well, an array is used where it is. But such an initializer is never folded into another, so a weight
that the optimizer may want to rewrite (a transposed one, say) is handed over as a copy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from intarsia.native.machine.isa import Isa
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.target.device_type import DeviceType
from intarsia.toolchain.external_weights import (
    all_graphs,
    external_tensors,
    is_lendable,
    put_inline,
    unfolded_weights,
    weight_of,
)
from intarsia.toolchain.onnxruntime import providers
from intarsia.toolchain.onnxruntime.message import onnxruntime_message

if TYPE_CHECKING:
    from onnx import ModelProto

_FATAL = 4
"""Log severity: an error is raised anyway, nothing else is worth a line on the user's terminal."""


_OPTIMIZED: Final = "optimized.onnx"


def create_session(
    model: ModelProto, source: KernelSource, profile_folder: Path | None = None, number: int = 0
) -> tuple[Any, object]:
    """A session for the model, and what must live as long as the session does.

    Args:
        model: The source's model; changed where weights must be put into it.
        source: Weights and target.
        profile_folder: Folder for the profile of the session's runs, and for the optimised model; None for a
            session that is not profiled.
        number: Number of the GPU for a target of GPUs.

    Raises:
        CompileError: onnxruntime refuses the model, or does not load what the target's GPU needs.
    """
    import onnxruntime

    onnxruntime.set_default_logger_severity(_FATAL)
    target = Target(source.target)
    options = session_options(target, model)
    if profile_folder is not None:
        _profile_into(options, profile_folder)
    lent = _lend_weights(options, model, source, in_place=target.kind == DeviceType.CPU.kind)
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=providers.session_providers(target, number)
        )
    except Exception as error:  # onnxruntime has no common base class for its exceptions
        raise CompileError(f"onnxruntime cannot compile this: {onnxruntime_message(error)}") from error
    providers.refuse_fallback(session, target, number)
    return session, lent


def optimized_model(profile_folder: Path) -> ModelProto:
    """Return the model as a profiled session runs it, without its weights."""
    import onnx

    return onnx.load(profile_folder / _OPTIMIZED, load_external_data=False)


def _profile_into(options: Any, folder: Path) -> None:
    """Let a session write its profile, and its optimised model, which explains the names in the profile."""
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    options.optimized_model_filepath = str(folder / _OPTIMIZED)
    # In a file of their own: a message of protobuf with all weights may exceed 2 GB.
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights")


def session_options(target: Target, model: ModelProto | None = None) -> Any:
    """Return the options of a session.

    Args:
        target: The options `threads` and `optimize`, and those of `options`.
        model: The model of the session; without one, an unoptimised session is taken to be right.
    """
    from onnxruntime import ExecutionMode, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = target.option("threads", usable_cores(Path("/")))
    options.inter_op_num_threads = 1
    options.execution_mode = ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = _FATAL
    options.graph_optimization_level = _graph_level(target, model)
    options.enable_cpu_mem_arena = target.option("memory_arena", True)
    for name, value in _config_entries(target).items():
        options.add_session_config_entry(name, value)
    return options


def _config_entries(target: Target) -> dict[str, str]:
    """Return the options that are set by name.

    The last two keep results right. On x86 without VNNI, products of uint8 and int8 saturate in 16 bits: a
    small network lost 8 % of its result; the rewriting that prevents it is of the graph level "extended".
    With VNNI it is not needed, and slower: MobileNetV2 in int8 takes 3.2 ms without it and 5.9 ms with it
    (Zen 5, 2 threads, onnxruntime 1.31, a loaded machine). Products with 4-bit weights round activations to 8
    bits (1 %).
    """
    return {
        "session.force_spinning_stop": "1",
        "session.intra_op.allow_spinning": str(int(target.option("spinning", True))),
        "session.disable_prepacking": str(int(not target.option("prepacking", True))),
        "session.dynamic_block_base": str(target.option("dynamic_blocks", 0)),
        "session.x64quantprecision": str(int(_saturates())),
        # By default (4), products with dequantised weights of 4 and 8 bits round the other operand to 8 bits:
        # a vision transformer of 2 layers is then off by 2e-2 instead of 1e-6 (onnxruntime 1.31).
        "session.qdq_matmulnbits_accuracy_level": "1",  # float32
    }


def _graph_level(target: Target, model: ModelProto | None) -> Any:
    """Return how far the graph of the model may be rewritten.

    An unoptimised session is a judge, and must be right above all: it rewrites products of bytes that would
    saturate.
    """
    from onnxruntime import GraphOptimizationLevel as Level

    if target.option("optimize", 1) == 0:
        saturates = model is not None and saturates_bytes(model)
        return Level.ORT_ENABLE_EXTENDED if saturates else Level.ORT_DISABLE_ALL
    levels = {
        "basic": Level.ORT_ENABLE_BASIC,
        "extended": Level.ORT_ENABLE_EXTENDED,
        "layout": Level.ORT_ENABLE_LAYOUT,
        "all": Level.ORT_ENABLE_ALL,
    }
    return levels[target.option("graph_level", "all")]


def saturates_bytes(model: ModelProto) -> bool:
    """Whether this CPU sums products of uint8 and int8 in 16 bits, and the model has weights of int8."""
    from onnx import TensorProto

    if not _saturates():
        return False
    tensors = (tensor for graph in all_graphs(model.graph) for tensor in graph.initializer)
    return any(tensor.data_type == TensorProto.INT8 for tensor in tensors)


def _saturates() -> bool:
    """Whether this CPU sums products of uint8 and int8 in 16 bits."""
    try:
        return not Isa.host_without_compiler().has_int8_dot
    except CompileError:  # no x86
        return False


def _lend_weights(options: Any, model: ModelProto, source: KernelSource, *, in_place: bool) -> object:
    """Give the weights to the options, or put those that cannot be lent into the model.

    Args:
        options: Options of the session.
        model: Its model.
        source: The weights.
        in_place: Whether a weight may be used where it is, which is the memory of the host.
    """
    from onnxruntime import OrtValue

    unfolded = unfolded_weights(model.graph)
    top = {tensor.name for tensor in model.graph.initializer}
    lent: dict[str, Any] = {}
    inline = []
    for tensor in external_tensors(model.graph):
        array = weight_of(tensor, source.weights)
        if not is_lendable(array) or tensor.name not in top or tensor.name in lent:
            inline.append(tensor)
            continue
        lent[tensor.name] = OrtValue.ortvalue_from_numpy_with_onnx_type(array, tensor.data_type)
        if in_place and tensor.name in unfolded:
            options.add_initializer(tensor.name, lent[tensor.name])
    put_inline(inline, source.weights)
    if lent:
        options.add_external_initializers(list(lent), list(lent.values()))
    return options, lent, source.weights
