"""Export of programs as ONNX messages, for every toolchain that reads ONNX."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from intarsia.frontend.onnx.emitter import GraphEmitter
from intarsia.frontend.onnx.export_opset import convert_to_opset
from intarsia.frontend.onnx.finishing import drop_unused_nodes, drop_unused_outputs, rename_values
from intarsia.frontend.onnx.graph_walk import nodes_of
from intarsia.frontend.onnx.value_names import flat_types
from intarsia.frontend.onnx.wire import LARGE
from intarsia.ir import Constant, DType, Function, IRModule, TupleType, Type, post_order
from intarsia.op.onnx_types import elem_type_of, tensor_to_proto, type_to_proto
from intarsia.op.opset import PINNED_OPSET, versions_of
from intarsia.support.errors import UnsupportedModelError, UsageError

if TYPE_CHECKING:
    from onnx import ModelProto

IR_VERSION = 13
"""The newest IR version that every toolchain reads (reference: toolchains)."""

LARGEST_MESSAGE = 2**31 - 1
"""Bytes; protobuf writes no larger message."""


@dataclass(frozen=True, slots=True)
class OnnxSource:
    """A model apart from its weights.

    Attributes:
        model: Serialized ModelProto; large initializers are marked as external data, without a file.
        weights: Their arrays by name, shared with the program's constants.
    """

    model: bytes
    weights: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)


def to_onnx(
    function: Function | IRModule,
    module: IRModule | None = None,
    *,
    opset: int = PINNED_OPSET,
    ir_version: int = IR_VERSION,
) -> ModelProto:
    """Export a function to a complete ONNX model, weights included.

    ONNX names no devices: a program that names some is exported without, with a `DroppedDevicesWarning`.
    Global functions of `module`, function values that are called, lets and tuples are inlined; an If becomes
    ONNX's If. Inputs are named as the parameters; outputs as the attribute `output_names` says.

    Args:
        function: The function, or a module for its @main; its parameters must be tensors (or ONNX
            sequences and optionals).
        module: Module of the global functions that it calls.
        opset: Opset of the result; if it is not the pinned one, onnx's converter converts it.
        ir_version: IR version of the result.

    Raises:
        UnsupportedModelError: Recursion, function values that are not called, tuple parameters, unknown
            types, an operator that the requested opset lacks, or more than 2 GiB.
        UsageError: There is no such opset.
    """
    _check_opset(opset)
    if isinstance(function, IRModule):
        module = function
        function = module["main"]
    _warn_of_devices(function, module)
    model, weights = _export(function, module, opset, ir_version)
    size = model.ByteSize() + sum(array.nbytes for array in weights.values())
    if size > LARGEST_MESSAGE:
        raise UnsupportedModelError(
            f"the model is {size / 2**30:.1f} GiB with its weights; one ONNX message holds at most 2 GiB",
            help="use onnx_source, which keeps the weights beside the model",
        )
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(tensor_to_proto(weights[tensor.name], tensor.name))
    return model


def onnx_source(
    function: Function,
    module: IRModule | None = None,
    *,
    opset: int = PINNED_OPSET,
    ir_version: int = IR_VERSION,
) -> OnnxSource:
    """Export a function with its large weights beside the model instead of in it: nothing is copied.

    Raises:
        UnsupportedModelError: As `to_onnx`.
    """
    model, weights = _export(function, module, opset, ir_version)
    return OnnxSource(model.SerializeToString(), weights)


class DroppedDevicesWarning(UserWarning):
    """A program on several devices, or none of the CPU, was exported without them."""


def _warn_of_devices(function: Function, module: IRModule | None) -> None:
    """Warn if an exported program loses devices; one CPU device is what a program without any runs on."""
    functions = [] if module is None else list(module.graph_functions.values())
    devices = (expr.virtual_device for expr in post_order(function, *functions))
    kinds = {(device.device_type, device.virtual_device_id) for device in devices if device.device_type}
    names = sorted(f"{kind.kind}:{number or 0}" for kind, number in kinds if kind)
    if len(set(names)) > 1 or any(not name.startswith("cpu:") for name in names):
        warnings.warn(
            DroppedDevicesWarning(f"ONNX names no devices: {', '.join(dict.fromkeys(names))} are dropped"),
            stacklevel=3,
        )


def _check_opset(opset: int) -> None:
    if not 1 <= opset <= PINNED_OPSET:
        raise UsageError(
            f"a program cannot be exported at opset {opset}", help=f"choose one from 7 to {PINNED_OPSET}"
        )


def _export(
    function: Function, module: IRModule | None, opset: int, ir_version: int
) -> tuple[ModelProto, dict[str, npt.NDArray[Any]]]:
    from onnx import ModelProto

    model = ModelProto(ir_version=ir_version, producer_name="intarsia")
    model.graph.name = str(function.attrs.get("global_symbol", "main"))
    emitter = GraphEmitter(model.graph, module)
    params = [emitter.fresh(param.name) for param in function.params]
    for name, param in zip(params, function.params, strict=True):
        model.graph.input.add(name=name, type=_param_type(name, param.checked_type))
    wanted = _output_names(function, emitter)
    results = emitter.emit_function(function, params)
    _declare_outputs(model, emitter, function, results, wanted)
    drop_unused_nodes(model.graph)
    drop_unused_outputs(model.graph)
    weights = _declare_initializers(model, emitter.constants)
    versions = versions_of((node.domain, node.op_type) for node in nodes_of(model.graph))
    for domain, version in sorted({"": PINNED_OPSET, **versions}.items()):
        model.opset_import.add(domain=domain, version=version)
    return convert_to_opset(model, opset, weights), weights


def _param_type(name: str, type_: Type | None) -> Any:
    if type_ is None or isinstance(type_, TupleType):
        raise UnsupportedModelError(
            f"parameter {name!r} has the type {type_ or 'unknown'}, which an ONNX input cannot have",
            help="run InferType, and pass tuples field by field",
        )
    return type_to_proto(type_)


def _output_names(function: Function, emitter: GraphEmitter) -> list[str]:
    """Reserve the requested output names before other values can take them."""
    wanted = function.attrs.get("output_names", ())
    assert isinstance(wanted, tuple)
    return [emitter.fresh(str(name)) for name in wanted]


def _declare_outputs(
    model: ModelProto, emitter: GraphEmitter, function: Function, results: list[str], wanted: list[str]
) -> None:
    """Declare the outputs under their wanted names, each produced by a node of the main graph."""
    types = flat_types(function.body.checked_type, len(results))
    if len(wanted) != len(results):
        wanted = [emitter.fresh(f"output_{position}") for position in range(len(results))]
    produced = {name for node in model.graph.node for name in node.output}
    renamed: dict[str, str] = {}
    for name, target, type_ in zip(results, wanted, types, strict=True):
        unique = name
        if unique not in produced or unique in renamed:
            unique = emitter.fresh(f"{target}_copy")
            model.graph.node.add(op_type="Identity", input=[name], output=[unique])
        renamed[unique] = target
        output = model.graph.output.add(name=target)
        if type_ is not None:
            output.type.CopyFrom(type_to_proto(type_))
    rename_values(model.graph, renamed)


def _declare_initializers(
    model: ModelProto, constants: Mapping[str, Constant]
) -> dict[str, npt.NDArray[Any]]:
    weights: dict[str, npt.NDArray[Any]] = {}
    for name, constant in constants.items():
        data = constant.data
        dtype = DType.of(data)
        if data.nbytes < LARGE or dtype is DType.STRING or dtype.value.endswith(("int4", "int2", "e2m1fn")):
            model.graph.initializer.append(tensor_to_proto(data, name))
            continue
        weights[name] = data
        tensor = model.graph.initializer.add(name=name, data_type=elem_type_of(dtype), dims=data.shape)
        tensor.data_location = tensor.EXTERNAL
        for key, value in (("location", "constants"), ("offset", "0"), ("length", str(data.nbytes))):
            tensor.external_data.add(key=key, value=value)
    return weights
