"""Process of a toolchain with one setting in a sweep: a fork server, with one child for each layer.

The server starts no thread, and imports what starts none. Requests and replies are lines of JSON, one reply
for each request, on the pipes that the server was started with:

{"model": FILE, "inputs": FILE, "results": FILE, "threads": N}
    Fork a child, which compiles the model and saves its results; it replies
    {"process": PID, "build_seconds": S}, or {"error": TEXT}.
{"seconds": S}
    Call the program for that long; the child replies {"median": S, "least": S}.
{"close": true}
    End the child; the server replies {"closed": true}, also when it has ended before.

Usage: python -m benchmarks.sweep.contender TOOLCHAIN SETTING
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
Program = tuple[Callable[[], object], list[Array]]
"""A call of a compiled model with bound inputs, and the arrays that it writes."""

DEFAULT: Final = "default"
PLAIN_LAYOUT: Final = "plain layout"
LATENCY: Final = "latency"
"""Settings: DEFAULT of all toolchains, PLAIN_LAYOUT of ONNX Runtime, LATENCY of OpenVINO."""
_WARM_SECONDS: Final = 0.003
"""Calls before those that are timed: the caches are full of what the others left."""
_FEWEST_CALLS: Final = 2
_SET_PARENT_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""
_MOST_ERROR: Final = 500
"""Characters of an error message that are kept."""


def load_native(setting: str, model: str, inputs: Arrays, threads: int) -> Program:
    """Compile a model with native and bind its arrays, as is done with those of the engines.

    Args:
        setting: Name of the CPU that code is generated for; DEFAULT for this machine.
        model: File of the model.
        inputs: Inputs by name.
        threads: Number of threads.
    """
    from intarsia.build import build
    from intarsia.frontend.onnx import from_onnx
    from intarsia.passes import partition_whole
    from intarsia.target import Target

    options: dict[str, Any] = {"threads": threads} | ({} if setting == DEFAULT else {"mcpu": setting})
    module = from_onnx(model, shapes={name: array.shape for name, array in inputs.items()})
    program = build(partition_whole(module, Target.for_toolchain("native", **options)))
    call = program.bind(dict(inputs))
    call()
    return call, list(call.outputs)


def load_onnxruntime(setting: str, model: str, inputs: Arrays, threads: int) -> Program:
    """Create a session of ONNX Runtime, by default or without blocked layouts."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    if setting == PLAIN_LAYOUT:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for info in session.get_inputs():
        binding.bind_cpu_input(info.name, inputs[info.name])
    results = session.run(None, dict(inputs))
    for info, result in zip(session.get_outputs(), results, strict=True):
        binding.bind_output(info.name, "cpu", 0, result.dtype, result.shape, result.ctypes.data)
    return (lambda: session.run_with_iobinding(binding)), results


def load_openvino(setting: str, model: str, inputs: Arrays, threads: int) -> Program:
    """Compile a model with OpenVINO in float32, by default or for latency without pinned threads."""
    import openvino

    options: dict[str, Any] = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    if setting == LATENCY:
        options |= {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "ENABLE_CPU_PINNING": False}
    core = openvino.Core()
    request = core.compile_model(core.read_model(model), "CPU", options).create_infer_request()
    for port in request.model_inputs:
        request.set_tensor(port, openvino.Tensor(inputs[port.any_name], shared_memory=True))
    request.infer()
    results = []
    for port in request.model_outputs:
        results.append(np.array(request.get_tensor(port).data))
        request.set_tensor(port, openvino.Tensor(results[-1], shared_memory=True))
    return request.infer, results


_LOADERS: Final = {"native": load_native, "onnxruntime": load_onnxruntime, "openvino": load_openvino}


def time_program(call: Callable[[], object], seconds: float) -> dict[str, float]:
    """Return the median and least seconds per call of a program that is called for some seconds."""
    began = time.perf_counter()
    while True:
        call()
        if time.perf_counter() - began >= _WARM_SECONDS:
            break
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < _FEWEST_CALLS or time.perf_counter() - began < seconds:
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    return {"median": statistics.median(times), "least": min(times)}


def _end_with_parent() -> None:
    """Have the system end this process with its parent: a stopped process would stay for ever."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _preload(name: str) -> None:
    """Import native's compiler, which takes seconds; the engines' libraries start threads."""
    if name == "native":
        import intarsia.measure.worker_modules  # noqa: F401
    gc.collect()
    gc.freeze()


def _serve_layer(name: str, setting: str, request: dict[str, Any], replies: TextIO) -> None:
    """Answer the requests on one layer, in a child of the server."""
    try:
        with np.load(request["inputs"]) as file:
            inputs = dict(file)
        began = time.perf_counter()
        call, results = _LOADERS[name](setting, request["model"], inputs, request["threads"])
        seconds = time.perf_counter() - began
        call()
        np.savez(request["results"], *results)
    except Exception as error:
        _reply(replies, {"error": f"{type(error).__name__}: {error}"[:_MOST_ERROR]})
        sys.stdin.readline()
        return
    _reply(replies, {"process": os.getpid(), "build_seconds": seconds})
    while line := sys.stdin.readline():
        turn = json.loads(line)
        if "close" in turn:
            return
        _reply(replies, time_program(call, turn["seconds"]))


def _reply(replies: TextIO, answer: dict[str, Any]) -> None:
    replies.write(json.dumps(answer) + "\n")
    replies.flush()


def main() -> None:
    name, setting = sys.argv[1:]
    _end_with_parent()
    # What libraries print goes to the error output, beside the replies.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _preload(name)
    _reply(replies, {"threads": len(list(Path("/proc/self/task").iterdir()))})
    while line := sys.stdin.readline():
        request = json.loads(line)
        if "close" in request:
            _reply(replies, {"closed": True})
            continue
        if "model" not in request:
            _reply(replies, {"error": "the process has ended"})
            continue
        child = os.fork()
        if not child:
            _end_with_parent()
            _serve_layer(name, setting, request, replies)
            # Libraries may wait for their threads when a process exits in order.
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            _reply(replies, {"error": f"the process ended with signal {os.WTERMSIG(status)}"})
        else:
            _reply(replies, {"closed": True})


if __name__ == "__main__":
    main()
