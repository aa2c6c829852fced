"""An artifact as a model of KServe's Python server: `kserve.ModelServer().start([IntarsiaModel(...)])`.

The server has the protocol (REST and gRPC), health, metrics and worker processes; requests run in a pool. A
model is sent to worker processes by its path: each opens a pool of its own for its first request.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kserve import InferOutput, InferRequest, InferResponse, Model
from kserve.errors import InferenceError, InvalidInput, ModelNotReady
from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from intarsia.runtime.artifact_load import load
from intarsia.runtime.kernel import Array
from intarsia.runtime.pool import Pool
from intarsia.serving.protocol_tensors import datatype_of, has_json_form, read_tensor, shape_of
from intarsia.support.errors import CallRefusedError, InputError, IntarsiaError


class IntarsiaModel(Model):
    """An artifact behind KServe.

    Args:
        name: Name of the model in requests.
        path: Path of the artifact.
        streams: Number of requests that run at the same time in a process; see `Pool`.
        threads: Number of threads of each.
        batch: Number of items up to which requests that wait are run as one.
        timeout: Time in seconds within which a request begins; others are answered with "not ready" (503).
        most_waiting: Number of requests that may wait; others are answered with "not ready" (503).
    """

    def __init__(
        self,
        name: str,
        path: str | os.PathLike[str],
        *,
        streams: int | None = None,
        threads: int | None = None,
        batch: int | None = None,
        timeout: float | None = None,
        most_waiting: int | None = None,
    ) -> None:
        super().__init__(name)
        self.path = Path(path)
        self._choice: dict[str, Any] = {
            "streams": streams,
            "threads": threads,
            "batch": batch,
            "most_waiting": most_waiting,
        }
        self._timeout = timeout
        self._inputs: list[dict[str, Any]] = []
        self._outputs: list[dict[str, Any]] = []
        self._pool: Pool | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a worker process gets: neither pool nor lock."""
        return {**self.__dict__, "_pool": None, "_lock": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def load(self) -> bool:
        """Check the artifact, so that a server with a damaged one does not start.

        Raises:
            IntarsiaError: It cannot be loaded or run in such a pool, or has a type that the protocol lacks.
        """
        with load(self.path) as executable, Pool(executable, **self._choice):
            self._inputs, self._outputs = (
                [
                    {"name": info.name, "datatype": datatype_of(info), "shape": shape_of(info)}
                    for info in infos
                ]
                for infos in (executable.inputs, executable.outputs)
            )
        self.ready = True
        return self.ready

    def stop(self) -> None:
        """End the pool of this process; requests that run end before."""
        self.ready = False
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def get_input_types(self) -> list[dict[str, Any]]:
        """Return name, datatype and shape of each input, for the model's metadata."""
        return self._inputs

    def get_output_types(self) -> list[dict[str, Any]]:
        """Return name, datatype and shape of each output, for the model's metadata."""
        return self._outputs

    async def predict(
        self,
        payload: InferRequest,
        headers: dict[str, str] | None = None,
        response_headers: dict[str, str] | None = None,
    ) -> InferResponse:
        """Answer a request.

        Raises:
            InvalidInput: It is no request for this model (400, INVALID_ARGUMENT).
            ModelNotReady: Too many requests wait, or it waited too long (503).
            InferenceError: The program failed on it.
        """
        del headers, response_headers
        if not isinstance(payload, InferRequest):
            raise InvalidInput("the model takes requests of the Open Inference Protocol v2")
        pool = self._open_pool()
        try:
            inputs = self._read(payload, pool)
            results = await pool.run_async(inputs, timeout=self._timeout, wait=False)
        except InputError as error:
            raise InvalidInput(str(error)) from error
        except CallRefusedError as error:
            raise ModelNotReady(self.name, str(error)) from error
        except IntarsiaError as error:
            raise InferenceError(str(error)) from error
        arrays = results if isinstance(results, tuple) else (results,)
        return self._answer(payload, dict(zip([item["name"] for item in self._outputs], arrays, strict=True)))

    def collect(self) -> Iterator[Any]:
        """Yield metrics of the pool of this process, for Prometheus."""
        pool = self._pool
        if pool is None:
            return
        counts = pool.counts()
        ended = CounterMetricFamily("intarsia_requests", "Requests by outcome.", labels=("model", "outcome"))
        for outcome in ("done", "failed", "refused", "late", "cancelled"):
            ended.add_metric((self.name, outcome), getattr(counts, outcome))
        yield ended
        for state in ("running", "waiting"):
            gauge = GaugeMetricFamily(
                f"intarsia_{state}_requests", f"Requests {state} now.", labels=("model",)
            )
            gauge.add_metric((self.name,), getattr(counts, state))
            yield gauge

    def _open_pool(self) -> Pool:
        with self._lock:
            if self._pool is None:
                executable = load(self.path)
                self._pool = Pool(executable, **self._choice)
                executable.close()  # the streams are clones
                REGISTRY.register(self)
            return self._pool

    def _read(self, request: InferRequest, pool: Pool) -> dict[str, Array]:
        infos = {info.name: info for info in pool.inputs}
        inputs: dict[str, Array] = {}
        for tensor in request.inputs:
            if tensor.name not in infos:
                names = ", ".join(infos)
                raise InputError(f'there is no input "{tensor.name}"', help=f"the inputs are {names}")
            if tensor.name in inputs:
                raise InputError(f'input "{tensor.name}" is given twice')
            data = tensor.data if tensor._raw_data is None else bytes(tensor._raw_data)
            if data is not None and not isinstance(data, (bytes, list)):  # contents of gRPC
                data = tensor.as_numpy().ravel().tolist()
            inputs[tensor.name] = read_tensor(infos[tensor.name], tensor.datatype, tensor.shape, data)
        for name in infos.keys() - inputs.keys():
            raise InputError(f'input "{name}" is missing')
        return inputs

    def _answer(self, request: InferRequest, results: Mapping[str, Array]) -> InferResponse:
        requested = request.request_outputs or []
        for item in requested:
            if item.name not in results:
                raise InvalidInput(f'there is no output "{item.name}", the outputs are {", ".join(results)}')
        names = [item.name for item in requested] or list(results)
        is_binary = {item.name: item.binary_data for item in requested}
        outputs = []
        for name in names:
            array = results[name]
            output = InferOutput(name, list(array.shape), self._datatypes()[name])
            binary = is_binary.get(name)
            binary = request.use_binary_outputs if binary is None else binary
            if not (binary or request.from_grpc or has_json_form(array)):
                raise InvalidInput(
                    f'output "{name}" cannot be written in JSON (NaN, infinity or FP16): '
                    'request binary data, by the parameter "binary_data_output": true'
                )
            output.set_data_from_numpy(array, binary_data=bool(binary or request.from_grpc))
            outputs.append(output)
        return InferResponse(
            request.id or str(uuid.uuid4()),
            self.name,
            outputs,
            from_grpc=request.from_grpc,
            use_binary_outputs=request.use_binary_outputs,
            requested_outputs=request.request_outputs,
        )

    def _datatypes(self) -> dict[str, str]:
        return {item["name"]: item["datatype"] for item in self._outputs}
