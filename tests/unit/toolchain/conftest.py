"""Sources of kernels, made of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from intarsia.runtime.kernel import KernelSource


def _source(
    toolchain: str,
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    inline: Mapping[str, np.ndarray[Any, Any]] | None = None,
    weights: Mapping[str, np.ndarray[Any, Any]] | None = None,
    options: str = "-threads=2",
) -> KernelSource:
    initializers = [numpy_helper.from_array(array, name) for name, array in (inline or {}).items()]
    for name, array in (weights or {}).items():
        element_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = TensorProto(name=name, data_type=element_type, dims=array.shape)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="constants")
        initializers.append(tensor)
    graph = helper.make_graph(nodes, "main", inputs, outputs, initializers)
    opsets = [
        helper.make_opsetid("", 26),
        helper.make_opsetid("ai.onnx.ml", 5),
        helper.make_opsetid("intarsia", 1),
    ]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=13)
    target = f"cpu -toolchain={toolchain} {options if toolchain != 'reference' else ''}".strip()
    return KernelSource(toolchain, target, model.SerializeToString(), dict(weights or {}))


@pytest.fixture
def source_of() -> Callable[..., KernelSource]:
    """`source_of(toolchain, nodes, inputs, outputs, inline=, weights=, options=)`."""
    return _source


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenVINO refuses unknown shapes where there is one core; what is tested here needs no second one."""
    monkeypatch.setattr("intarsia.toolchain.openvino.model.usable_cores", lambda root: 2)
