"""From a model to an engine of TensorRT, which is built for the GPU that is current in this thread.

The element types of the model count: networks are strongly typed, and float32 is not rounded to 10 bits
(TF32).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError
from intarsia.toolchain.engine_message import shortened
from intarsia.toolchain.external_weights import external_tensors, put_inline
from intarsia.toolchain.input_identity import put_identity_behind_inputs
from intarsia.toolchain.onnx_port import input_ports, output_ports, parse_model, refuse_packed

if TYPE_CHECKING:
    from onnx import ModelProto


def build_engine(source: KernelSource) -> bytes:
    """Return the engine of a source, serialised.

    Raises:
        CompileError: TensorRT refuses the model, or a shape is known at run time only.
    """
    import tensorrt

    model = _model_of(source)
    logger = tensorrt.Logger(tensorrt.Logger.ERROR)
    builder = tensorrt.Builder(logger)
    network = builder.create_network(_network_flags(tensorrt))
    parser = tensorrt.OnnxParser(network, logger)
    if not parser.parse(model.SerializeToString()):
        errors = [str(parser.get_error(number).desc()) for number in range(parser.num_errors)]
        raise _refusal("; ".join(errors) or "its parser gives no reason")
    config = builder.create_builder_config()
    tf32 = getattr(tensorrt.BuilderFlag, "TF32", None)
    if tf32 is not None:
        config.clear_flag(tf32)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise _refusal("it built no engine; its log says why")
    return bytes(engine)


def _network_flags(tensorrt: Any) -> int:
    """Return the flags of a strongly typed network; all networks are, where there is no flag for it."""
    flag = getattr(tensorrt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    return 0 if flag is None else 1 << int(flag)


def _model_of(source: KernelSource) -> ModelProto:
    model = parse_model(source, "tensorrt")
    if {port.name for port in input_ports(model.graph)} & {port.name for port in output_ports(model.graph)}:
        put_identity_behind_inputs(model.graph)
    ports = (*input_ports(model.graph), *output_ports(model.graph))
    refuse_packed("tensorrt", ports)
    for port in ports:
        if not port.is_plain:
            raise _refusal(f"{port.name!r} is no array of numbers")
        if port.shape is None:
            raise _refusal(f"the shape of {port.name!r} is known at run time only")
    put_inline(external_tensors(model.graph), source.weights)
    return model


def _refusal(reason: str) -> CompileError:
    return CompileError(f"tensorrt cannot compile this: {shortened(reason, CompileError(reason))}")
