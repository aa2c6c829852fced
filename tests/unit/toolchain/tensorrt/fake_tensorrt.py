"""A module in place of tensorrt: the part of its interface that is called, computed by ONNX's reference.

It is written after the documentation of TensorRT 10, as the toolchain is, and proves nothing about TensorRT.
"""

from __future__ import annotations

import ctypes
from enum import Enum
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from tests.gpu_on_cpu.fake_gpu import finish_work

__version__ = "10.9.0"
UNKNOWN_OPERATOR = "Det"
"""Operator that the parser does not know."""
log: list[str] = []


class Logger:
    ERROR = 1

    def __init__(self, severity: int) -> None:
        assert severity == self.ERROR


class NetworkDefinitionCreationFlag(Enum):
    STRONGLY_TYPED = 1

    def __int__(self) -> int:
        return int(self.value)


class BuilderFlag(Enum):
    TF32 = 7


class Network:
    def __init__(self, flags: int) -> None:
        self.flags = flags
        self.model = b""


class ParserError:
    def desc(self) -> str:
        return f"no importer for {UNKNOWN_OPERATOR}"


class OnnxParser:
    def __init__(self, network: Network, logger: Logger) -> None:
        self._network, self.num_errors = network, 0

    def parse(self, model: bytes) -> bool:
        graph = onnx.load_model_from_string(model).graph
        self.num_errors = int(any(node.op_type == UNKNOWN_OPERATOR for node in graph.node))
        self._network.model = model
        return self.num_errors == 0

    def get_error(self, number: int) -> ParserError:
        assert number == 0
        return ParserError()


class BuilderConfig:
    def clear_flag(self, flag: BuilderFlag) -> None:
        log.append(f"without {flag.name}")


class Builder:
    def __init__(self, logger: Logger) -> None:
        self._logger = logger

    def create_network(self, flags: int) -> Network:
        return Network(flags)

    def create_builder_config(self) -> BuilderConfig:
        return BuilderConfig()

    def build_serialized_network(self, network: Network, config: BuilderConfig) -> bytes:
        log.append(f"built with flags {network.flags}")
        return b"engine " + network.model


class ExecutionContext:
    def __init__(self, model: bytes) -> None:
        self._model = onnx.load_model_from_string(model)
        self._addresses: dict[str, int] = {}

    def set_tensor_address(self, name: str, address: int) -> bool:
        self._addresses[name] = address
        return True

    def execute_async_v3(self, stream: int) -> bool:
        assert stream
        finish_work()
        graph = self._model.graph
        feeds = {value.name: self._array(value) for value in graph.input}
        results = ReferenceEvaluator(self._model).run(None, feeds)
        for value, result in zip(graph.output, results, strict=True):
            self._array(value)[...] = result
        return True

    def _array(self, value: onnx.ValueInfoProto) -> np.ndarray[Any, Any]:
        tensor = value.type.tensor_type
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        shape = tuple(dim.dim_value for dim in tensor.shape.dim)
        size = int(np.prod(shape)) * dtype.itemsize
        memory = (ctypes.c_char * size).from_address(self._addresses[value.name])
        return np.frombuffer(memory, dtype).reshape(shape)


class Engine:
    def __init__(self, model: bytes) -> None:
        self._model = model

    def create_execution_context(self) -> ExecutionContext:
        return ExecutionContext(self._model)


class Runtime:
    def __init__(self, logger: Logger) -> None:
        self._logger = logger

    def deserialize_cuda_engine(self, engine: bytes) -> Engine | None:
        return Engine(engine.removeprefix(b"engine ")) if engine.startswith(b"engine ") else None
