"""KServe's server and clients on the loopback: answers, errors of the protocol, load, and a killed worker.

KServe is not in .venv: `make serving` runs these tests in an environment of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.onnx_models import model_of

import intarsia as ia

kserve = pytest.importorskip("kserve")

ROOT = Path(__file__).parents[3]
TEXT = """g (float[n,8] x, float[n,8] b) => (float[n,8] y, int64[n] i) {
  a = Add (x, b) y = Softmax (a) i = ArgMax <axis = 1, keepdims = 0> (a)
}"""
PATIENCE_S = 120.0
B = np.linspace(0, 1, 8, dtype=np.float32)


@dataclass
class Server:
    """A running server."""

    process: subprocess.Popen[bytes]
    url: str
    grpc: str

    def get(self, path: str) -> tuple[int, str]:
        return self.send(urllib.request.Request(f"{self.url}{path}"))

    def post(self, body: object, model: str = "m", **headers: str) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"{self.url}/v2/models/{model}/infer"
        return self.send(urllib.request.Request(url, data, {"Content-Type": "application/json", **headers}))

    def send(self, request: urllib.request.Request) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def started(folder: Path, *options: str) -> Server:
    artifact = folder / "m.intarsia"
    ia.build(ia.from_onnx(model_of(TEXT)), "cpu -toolchain=onnxruntime -threads=1").save(artifact)
    http, grpc = free_port(), free_port()
    command = [sys.executable, str(ROOT / "examples/serve.py"), str(artifact), *options]
    ports = [f"--http_port={http}", f"--grpc_port={grpc}"]
    process = subprocess.Popen([*command, *ports], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = Server(process, f"http://127.0.0.1:{http}", f"127.0.0.1:{grpc}")
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            if server.get("/v2/health/ready")[0] == 200:
                return server
        except OSError:
            time.sleep(0.1)
    process.kill()
    raise AssertionError("the server does not start")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = started(tmp_path_factory.mktemp("serving"), "--streams=2", "--batch=8")
    yield server
    server.process.terminate()
    server.process.wait(PATIENCE_S)


def request_of(x: np.ndarray[Any, Any], binary: bool, **parameters: Any) -> Any:
    tensors = []
    for name, array in (("x", x), ("b", np.tile(B, (len(x), 1)))):
        tensor = kserve.InferInput(name, list(array.shape), "FP32")
        tensor.set_data_from_numpy(array, binary_data=binary)
        tensors.append(tensor)
    return kserve.InferRequest("m", tensors, parameters=parameters)


def softmax(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    powers = np.exp(x + B - (x + B).max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def is_right(response: Any, x: np.ndarray[Any, Any]) -> bool:
    y, i = (output.as_numpy() for output in response.outputs)
    return np.allclose(y, softmax(x), rtol=1e-4, atol=1e-6) and bool((i == (x + B).argmax(axis=1)).all())


def body(**changes: Any) -> dict[str, Any]:
    x = {"name": "x", "shape": [1, 8], "datatype": "FP32", "data": [0.5] * 8}
    b = {"name": "b", "shape": [1, 8], "datatype": "FP32", "data": [0.0] * 8}
    return {"inputs": [{**x, **changes}, b]}


def test_metadata_health_and_metrics(server: Server) -> None:
    assert json.loads(server.get("/v2/models/m")[1])["inputs"] == [
        {"name": "x", "datatype": "FP32", "shape": [-1, 8]},
        {"name": "b", "datatype": "FP32", "shape": [-1, 8]},
    ]
    assert server.get("/v2/models/m/ready")[0] == 200
    assert server.get("/v2/health/live")[0] == 200
    assert server.post(body())[0] == 200
    assert 'intarsia_requests_total{model="m",outcome="done"}' in server.get("/metrics")[1]


@pytest.mark.parametrize("binary", [False, True])
def test_its_rest_client_under_load(server: Server, binary: bool) -> None:
    async def play() -> list[bool]:
        client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2", timeout=PATIENCE_S))
        rng = np.random.default_rng(1)

        async def ask(rows: int) -> bool:
            x = rng.standard_normal((rows, 8)).astype(np.float32)
            request = request_of(x, binary, binary_data_output=binary)
            return is_right(await client.infer(server.url, request, "m"), x)

        return await asyncio.gather(*(ask(1 + number % 5) for number in range(60)))

    assert all(asyncio.run(play()))


def test_its_grpc_client(server: Server) -> None:
    async def play() -> list[bool]:
        client = kserve.InferenceGRPCClient(server.grpc, timeout=PATIENCE_S)
        arrays = [np.full((rows, 8), rows, np.float32) for rows in range(1, 6)]
        answers = await asyncio.gather(*(client.infer(request_of(x, True)) for x in arrays))
        return [is_right(answer, x) for answer, x in zip(answers, arrays, strict=True)]

    assert all(asyncio.run(play()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": [1, 7]}, "has 8 elements"),
        ({"shape": [-1, 8]}, "expected numbers from 0 on"),
        ({"shape": [8]}, "has shape (8,)"),
        ({"shape": [10**18, 8]}, "has 8 elements"),
        ({"datatype": "INT64"}, "has the datatype INT64, expected FP32"),
        ({"datatype": "WHAT"}, "has the datatype WHAT"),
        ({"name": "z"}, "there is no input"),
        ({"name": "b"}, "is given twice"),
        ({"data": [None] * 8}, "no numbers of FP32"),
        ({"data": ["a"] * 8}, "no numbers of FP32"),
        ({"data": [[1], [2, 3]]}, "no array of numbers"),
        ({"data": [float("nan")] * 8}, "NaN or infinity, which JSON lacks"),
        ({"data": [1e39] * 8}, "beyond FP32"),
    ],
)
def test_bad_requests_are_errors_of_the_client(server: Server, changes: dict[str, Any], message: str) -> None:
    status, text = server.post(body(**changes))
    assert status == 400
    assert message in json.loads(text)["error"]
    assert server.post(body())[0] == 200, "the server goes on"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b"[" * 100_000, b"\xff\xfe", b'{"inputs": 3}'])
def test_what_is_no_request_is_an_error_of_the_client(server: Server, data: bytes) -> None:
    assert 400 <= server.post(data)[0] < 500
    assert server.post(body())[0] == 200


def binary_request() -> tuple[bytes, int]:
    """A request with binary tensors, and the length of its JSON part."""
    content, length = request_of(np.full((1, 8), 0.5, np.float32), True).to_rest()
    return bytes(content), int(length)


@pytest.mark.parametrize(
    "length",
    [
        "",
        "abc",
        "-1",
        "1.5",
        "0",
        "1",
        "99999999",
        "9" * 400,
        "{length - 1}",
        "{length + 1}",
        "{most}",
    ],
)
def test_a_wrong_length_of_the_json_part_is_an_error_of_the_client(server: Server, length: str) -> None:
    content, right = binary_request()
    values = {"{length - 1}": right - 1, "{length + 1}": right + 1, "{most}": len(content)}
    text = str(values.get(length, length))
    headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": text}
    status, answer = server.post(content, **headers)
    assert status == 400, answer
    assert json.loads(answer)["error"]
    headers["Inference-Header-Content-Length"] = str(right)
    assert server.post(content, **headers)[0] == 200


def binary_input(**changes: Any) -> dict[str, Any]:
    tensor = {"name": "x", "shape": [1, 8], "datatype": "FP32", "parameters": {"binary_data_size": 32}}
    return {"inputs": [{**tensor, **changes}]}


@pytest.mark.parametrize(
    "part",
    [
        [],
        3,
        {},
        {"inputs": 3},
        {"inputs": [3]},
        {"inputs": [{"name": "x"}]},
        {"inputs": [], "outputs": 3},
        {"inputs": [], "outputs": [3]},
        binary_input(parameters={"binary_data_size": -3}),
        binary_input(parameters={"binary_data_size": "a"}),
        binary_input(parameters={"binary_data_size": None}),
        binary_input(parameters=3),
        binary_input(shape=["a"]),
        binary_input(shape=[3]),
        binary_input(datatype="Q"),
        binary_input(datatype="BYTES"),
    ],
)
def test_binary_requests_that_cannot_be_read(server: Server, part: object) -> None:
    text = json.dumps(part).encode()
    headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(text))}
    status, answer = server.post(text + bytes(32), **headers)
    assert status == 400, answer
    assert server.post(body())[0] == 200


def test_unknown_models_and_outputs(server: Server) -> None:
    assert server.post(body(), model="nope")[0] == 404
    status, text = server.post({**body(), "outputs": [{"name": "q"}]})
    assert (status, "there is no output" in text) == (400, True)


def test_a_killed_worker_costs_no_request_of_a_client_that_tries_again(tmp_path: Path) -> None:
    server = started(tmp_path, "--workers=2", "--streams=2", "--enable_grpc=False")
    try:
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
        workers = [pid for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        assert len(workers) == 2

        async def play() -> list[bool]:
            async def ask(number: int) -> bool:
                if number == 30:
                    os.kill(int(workers[0]), signal.SIGKILL)
                x = np.full((1, 8), number, np.float32)
                while True:
                    client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2", timeout=PATIENCE_S))
                    try:
                        return is_right(await client.infer(server.url, request_of(x, False), "m"), x)
                    except Exception:  # the connection broke: the client sends it again
                        await asyncio.sleep(0.1)
                    finally:
                        await client.close()

            results = []
            for start in range(0, 100, 10):
                results += await asyncio.gather(*(ask(start + item) for item in range(10)))
            return results

        assert all(asyncio.run(asyncio.wait_for(play(), PATIENCE_S)))
    finally:
        server.process.terminate()
        server.process.wait(PATIENCE_S)
