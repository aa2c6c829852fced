"""Read a model from a file, bytes or a message, with its weights beside it as arrays."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from intarsia.frontend.onnx.external_data import WeightSource
from intarsia.frontend.onnx.import_limits import UNLIMITED, ImportLimits
from intarsia.frontend.onnx.normal_form import normalize
from intarsia.frontend.onnx.wire import LARGE, SELF, cut_out_weights, not_a_model
from intarsia.support.errors import InvalidModelError, UsageError

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto


@dataclass(frozen=True, slots=True)
class RawModel:
    """A model as read.

    Attributes:
        proto: The message in normal form; its main graph has no initializers.
        weights: The main graph's initializers by name, each in memory once.
        source: Source of the other tensors' external data.
        name: Name of the model in spans: the file's name, or the graph's.
    """

    proto: ModelProto
    weights: dict[str, npt.NDArray[Any]]
    source: WeightSource
    name: str


def read_model(model: str | Path | bytes | ModelProto, limits: ImportLimits = UNLIMITED) -> RawModel:
    """Read a model; see `from_onnx`.

    Raises:
        UnsupportedModelError: A sparse tensor has more elements than the limits allow.
        UsageError: There is no such file, or it cannot be read.
        InvalidModelError: The bytes are no ONNX model, or are truncated.
    """
    from onnx import ModelProto

    if isinstance(model, ModelProto):
        return _from_message(model, limits)
    if isinstance(model, (bytes, bytearray, memoryview)):
        view = memoryview(model)
        return _with_weights(_parse(cut_out_weights(view)), WeightSource(None, view), "", limits)
    if not isinstance(model, (str, Path)):
        raise UsageError(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")
    path = Path(model)
    skeleton = _read_skeleton(path)
    return _with_weights(skeleton, WeightSource(path.parent, path), path.name, limits)


def with_arrays(
    proto: ModelProto, arrays: Mapping[str, npt.NDArray[Any]], name: str, limits: ImportLimits = UNLIMITED
) -> RawModel:
    """Return a message whose weights are given as arrays.

    Args:
        proto: The message; it is changed. A weight may be an input of its graph.
        arrays: Weights by name; they are not copied, and become read-only.
        name: Name of the model in spans.
        limits: Limits on sparse tensors.

    Raises:
        InvalidModelError: A weight has the name of an initializer of the message.
    """
    raw = _with_weights(proto, WeightSource(None, memoryview(b"")), name, limits)
    for weight, array in arrays.items():
        if weight in raw.weights:
            raise InvalidModelError(f"the model has two initializers named {weight!r}")
        raw.weights[weight] = array
    return raw


def _read_skeleton(path: Path) -> ModelProto:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return _parse(b"")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _parse(cut_out_weights(data))
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}", help="check the path") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder, expected an ONNX file") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    except InvalidModelError as error:
        error.add_note(f"in {path}")
        raise


def _parse(skeleton: bytes) -> ModelProto:
    if not skeleton:
        raise InvalidModelError("the model is empty: it has no bytes", help="copy or download the file again")
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    proto = ModelProto()
    try:
        proto.ParseFromString(skeleton)
    except DecodeError:
        raise not_a_model("the bytes are no ModelProto message") from None
    if not proto.HasField("graph") or not (proto.ir_version or proto.opset_import):
        raise not_a_model("there is no graph in it")
    return proto


def _from_message(model: ModelProto, limits: ImportLimits) -> RawModel:
    from onnx import ModelProto

    skeleton = ModelProto()
    for field, value in model.ListFields():
        if field.name != "graph":
            _copy_field(skeleton, field, value)
    for field, value in model.graph.ListFields():
        if field.name != "initializer":
            _copy_field(skeleton.graph, field, value)
    raw = _with_weights(skeleton, WeightSource(None, memoryview(b"")), "", limits)
    for tensor in model.graph.initializer:
        _add_weight(raw.weights, tensor, _own_array(tensor))
    return raw


def _copy_field(message: Any, field: Any, value: Any) -> None:
    if hasattr(value, "extend"):  # repeated
        getattr(message, field.name).extend(value)
    elif field.message_type is not None:
        getattr(message, field.name).CopyFrom(value)
    else:
        setattr(message, field.name, value)


def _own_array(tensor: TensorProto) -> npt.NDArray[Any]:
    """Copy the data out of the message once: `raw_data` is a fresh bytes object at each access."""
    from onnx import TensorProto

    source = WeightSource(None, memoryview(b""))
    if not tensor.HasField("raw_data") or len(raw := tensor.raw_data) < LARGE:
        return source.read(tensor)
    marked = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    marked.data_location = TensorProto.EXTERNAL
    for key, value in (("location", SELF), ("offset", "0"), ("length", str(len(raw)))):
        marked.external_data.add(key=key, value=value)
    return WeightSource(None, memoryview(raw)).read(marked)


def _with_weights(proto: ModelProto, source: WeightSource, name: str, limits: ImportLimits) -> RawModel:
    normalize(proto, source, limits)
    weights: dict[str, npt.NDArray[Any]] = {}
    for tensor in proto.graph.initializer:
        _add_weight(weights, tensor, source.read(tensor))
    del proto.graph.initializer[:]
    return RawModel(proto, weights, source, name or proto.graph.name or "model")


def _add_weight(weights: dict[str, npt.NDArray[Any]], tensor: TensorProto, array: npt.NDArray[Any]) -> None:
    if tensor.name in weights:
        raise InvalidModelError(f"the model has two initializers named {tensor.name!r}")
    weights[tensor.name] = array
