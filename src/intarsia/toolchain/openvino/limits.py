"""Limits of the integers that a kernel of OpenVINO is called with, kept in the metadata of its model.

OpenVINO stores 64 bits as 32, and `integers` proves some programs for small masks only. Both are
checked at each call, in the process that compiled the program and in one that loaded its artifact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from intarsia.ir import Expr, Function
from intarsia.runtime.kernel import KernelSource, Value
from intarsia.support.errors import ExecutionError
from intarsia.toolchain.onnx_port import Port
from intarsia.toolchain.openvino.integer_ranges import INT32, Interval

_KEY: Final = "intarsia.openvino.limits."
_WIDE: Final = frozenset({"int64", "uint64", "uint32"})


def with_limits(source: KernelSource, function: Function, limits: Mapping[Expr, Interval]) -> KernelSource:
    """Return the source with limits of parameters in its model's metadata.

    Args:
        source: The exported function.
        function: The function; its parameters are the inputs of the model, in order.
        limits: Intervals of some of the parameters, both ends included.
    """
    from onnx import ModelProto

    if not limits:
        return source
    extra = ModelProto()
    for number, param in enumerate(function.params):
        if param in limits:
            low, high = limits[param]
            extra.metadata_props.add(key=f"{_KEY}{number}", value=f"{low:.0f},{high:.0f}")
    # Serialised messages that are appended are merged, so that the model need not be parsed.
    return replace(source, model=source.model + extra.SerializeToString())


def input_limits(metadata: Mapping[str, str], inputs: Sequence[Port]) -> dict[int, Interval]:
    """Return the limits by number of the input: those of the metadata, 32 bits for other wide integers."""
    limits: dict[int, Interval] = {
        number: INT32
        for number, port in enumerate(inputs)
        if port.dtype is not None and port.dtype.name in _WIDE
    }
    for key, text in metadata.items():
        if key.startswith(_KEY):
            low, high = map(int, text.split(","))
            limits[int(key.removeprefix(_KEY))] = low, high
    return limits


def refuse_beyond(value: Value, port: Port, limits: Interval) -> None:
    """Refuse values that OpenVINO may compute wrong without a word; a few microseconds.

    Raises:
        ExecutionError: There is one.
    """
    array, (low, high) = np.asarray(value), limits
    if not array.size or (array.max() <= high and array.min() >= low):
        return
    beyond = array[(array > high) | (array < low)].flat[0]
    kept = "computes integers in 32 bits" if limits == INT32 else f"was compiled for masks of {low} to {high}"
    raise ExecutionError(
        f"openvino {kept}, and {port.name!r} holds {beyond}",
        help="another toolchain takes all values of the type: build for -toolchain=onnxruntime or native",
    )
