"""The operator domains of onnxruntime: what it declares about operators that ONNX does not define.

Schemas are onnxruntime's own. Types are what a session of one node says about its outputs, so a node that has
types here also has a kernel. Values are computed by such a session without any optimisation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from intarsia.ir import ABSENT, ANY, DType, SymbolicDim, TensorType, Type
from intarsia.op.onnx_types import tensor_to_proto, tensor_type_text, type_to_proto
from intarsia.op.opset import PINNED_OPSET
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.support.errors import IntarsiaError, InvalidModelError, UnsupportedModelError
from intarsia.target import Target
from intarsia.toolchain.onnxruntime.message import onnxruntime_message
from intarsia.toolchain.onnxruntime.session import session_options
from intarsia.toolchain.package import package_availability
from intarsia.toolchain.protocol import Unavailable

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto
    from onnx.defs import OpSchema

Array = npt.NDArray[Any]

_IR_VERSION = 13
_UNOPTIMISED = "cpu -toolchain=onnxruntime -optimize=0 -threads=1"
_FATAL = 4
"""Log severity: an error is raised anyway."""
_CACHED_NODE = 1 << 16
"""Bytes; a session of a larger node is not kept."""


class _OnnxRuntimeOperators:
    """A domain of operators that only onnxruntime defines."""

    domain: ClassVar[str]
    version: int = 1
    toolchains: frozenset[str] = frozenset({"onnxruntime"})
    judge: str = "onnxruntime without optimisations"

    def obstacle(self) -> str | None:
        """See OperatorDomain.obstacle."""
        available = package_availability("onnxruntime", "pip install 'intarsia[onnxruntime]'")
        return available.reason if isinstance(available, Unavailable) else None

    def schema(self, name: str) -> OpSchema | None:
        """See OperatorDomain.schema."""
        return _schemas(self.domain).get(name)

    def operators(self) -> Sequence[str]:
        """See OperatorDomain.operators."""
        return tuple(_schemas(self.domain))

    def infer(
        self, node: NodeProto, types: Sequence[Type], values: Mapping[int, Array]
    ) -> tuple[Type | None, ...]:
        """See OperatorDomain.infer."""
        data = tuple(
            (position, value.shape, value.dtype.str, value.tobytes()) for position, value in values.items()
        )
        return _inferred(node.SerializeToString(deterministic=True), tuple(types), data)

    def evaluate(self, node: NodeProto, types: Sequence[Type], values: Sequence[Array]) -> Sequence[Array]:
        """See OperatorDomain.evaluate."""
        text, types = node.SerializeToString(deterministic=True), tuple(types)
        make = _kernel if len(text) <= _CACHED_NODE else _kernel.__wrapped__
        return make(text, types).run(list(values), [None] * len(node.output))  # type: ignore[return-value]  # tensors


class MicrosoftOperators(_OnnxRuntimeOperators):
    """The domain "com.microsoft": onnxruntime's contributed operators."""

    domain = "com.microsoft"


class BlockedLayoutOperators(_OnnxRuntimeOperators):
    """The domain "com.microsoft.nchwc": what onnxruntime writes into models that it optimised fully."""

    domain = "com.microsoft.nchwc"


@cache
def _schemas(domain: str) -> dict[str, OpSchema]:
    """The newest schemas of a domain by operator, as onnx writes schemas; 20 ms."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    schemas = sorted(
        (schema for schema in get_all_operator_schema() if schema.domain == domain),
        key=lambda schema: (schema.name, schema.since_version),
    )
    return {schema.name: _as_onnx(schema) for schema in schemas}


def _as_onnx(schema: Any) -> OpSchema:
    from onnx import defs

    return defs.OpSchema(
        schema.name,
        schema.domain,
        schema.since_version,
        inputs=[_formal(item) for item in schema.inputs],
        outputs=[_formal(item) for item in schema.outputs],
        type_constraints=[
            (item.type_param_str, list(item.allowed_type_strs), "") for item in schema.type_constraints
        ],
        attributes=[_attribute(item) for item in schema.attributes.values()],
    )


def _formal(formal: Any) -> Any:
    from onnx.defs import OpSchema

    option = OpSchema.FormalParameterOption(int(formal.option))
    return OpSchema.FormalParameter(
        formal.name, formal.typeStr, param_option=option, is_homogeneous=formal.isHomogeneous
    )


def _attribute(attribute: Any) -> Any:
    from onnx import AttributeProto
    from onnx.defs import OpSchema

    kind = OpSchema.AttrType(int(attribute.type))
    default = AttributeProto.FromString(attribute._default_value)
    if default.type:
        return OpSchema.Attribute(attribute.name, default)
    return OpSchema.Attribute(attribute.name, kind, required=attribute.required)


@lru_cache(maxsize=1 << 14)
def _inferred(
    node: bytes, types: tuple[Type, ...], data: tuple[tuple[int, tuple[int, ...], str, bytes], ...]
) -> tuple[Type | None, ...]:
    """The types of a node's outputs, as a session of the node describes them.

    That description does not distinguish a scalar from a tensor of unknown rank: the shape of its shape does.
    """
    import onnxruntime

    model = _one_node(node, types)
    for position, shape, dtype, raw in data:
        array = np.frombuffer(raw, dtype).reshape(shape)
        model.graph.initializer.append(tensor_to_proto(array, f"i{position}"))
    names = list(model.graph.node[0].output)
    for name in names:
        model.graph.node.add(op_type="Shape", input=[name], output=[f"{name}_shape"])
        model.graph.output.add(name=f"{name}_shape")
    onnxruntime.set_default_logger_severity(_FATAL)
    options, providers = session_options(Target(_UNOPTIMISED)), ["CPUExecutionProvider"]
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)
    except Exception as error:  # onnxruntime has no common base class for its exceptions
        raise _refusal(model.graph.node[0], types, error) from None
    described = {item.name: item for item in session.get_outputs()}
    return tuple(_type_of(described[name], described[f"{name}_shape"]) for name in names)


def _type_of(output: Any, shape: Any) -> Type | None:
    """The type of a described output; None for what is no tensor."""
    dtype = _element_types().get(output.type)
    if dtype is None:
        return None
    if not output.shape and shape.shape != [0]:
        return TensorType(None, dtype)
    dims = (
        ANY if dim is None else SymbolicDim(dim) if isinstance(dim, str) else int(dim) for dim in output.shape
    )
    return TensorType(tuple(dims), dtype)


@cache
def _element_types() -> dict[str, DType]:
    """Element types by what onnxruntime calls tensors of them, as schemas do: "tensor(float)"."""
    return {tensor_type_text(dtype): dtype for dtype in DType}


def _refusal(node: NodeProto, types: tuple[Type, ...], error: Exception) -> IntarsiaError:
    operator, text = f"{node.domain}::{node.op_type}", onnxruntime_message(error)
    if type(error).__name__ == "NotImplemented":
        return UnsupportedModelError(
            f"operator {operator!r} has no kernel in onnxruntime for the CPU: {text}",
            help="export the model with ONNX's own operators, or with the types that onnxruntime's CPU takes",
        )
    shown = ", ".join(str(item) for item in types)
    return InvalidModelError(f"operator {operator!r} cannot be applied to ({shown}): {text}")


@lru_cache(maxsize=64)
def _kernel(node: bytes, types: tuple[Type, ...]) -> Kernel:
    from intarsia.toolchain.onnxruntime.kernel import load_kernel

    model = _one_node(node, types)
    return load_kernel(KernelSource("onnxruntime", _UNOPTIMISED, model.SerializeToString(), {}))


def _one_node(node: bytes, types: tuple[Type, ...]) -> ModelProto:
    from onnx import ModelProto

    model = ModelProto(ir_version=_IR_VERSION)
    model.graph.name = "one_node"
    model.graph.node.add().ParseFromString(node)
    (item,) = model.graph.node
    model.opset_import.add(domain="", version=PINNED_OPSET)
    model.opset_import.add(domain=item.domain, version=1)
    for position, type_ in enumerate(types):
        if type_ != ABSENT:
            model.graph.input.add(name=f"i{position}", type=type_to_proto(type_))
    for name in item.output:
        model.graph.output.add(name=name)
    return model
