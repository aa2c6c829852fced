"""Slowdown of one engine by the threads of another: the evidence for the session options of the toolchains.

    python -m benchmarks.thread_policy [rounds]

Bare engines with 2 threads. Each candidate runs in processes of its own, interleaved, because a spinning
thread pool slows down whatever is timed next. The output is the median and the best of the medians of the
processes.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

SHAPE = (1, 64, 28, 28)
SPINNING = {
    "default": {},
    "force_spinning_stop": {"session.force_spinning_stop": "1"},
    "no spinning": {"session.intra_op.allow_spinning": "0"},
}
PINNING = {"default": {}, "pinned": {"ENABLE_CPU_PINNING": "YES"}, "not pinned": {"ENABLE_CPU_PINNING": "NO"}}
GROUPS = {
    "onnxruntime: 12 convolutions": [(spin, "") for spin in SPINNING],
    "onnxruntime: squeezenet": [(spin, "") for spin in SPINNING],
    "onnxruntime: 12 sessions": [(spin, "") for spin in SPINNING],
    "openvino: 12 convolutions": [("", pin) for pin in PINNING],
    "openvino: 12 models": [("", pin) for pin in PINNING],
    "both: 12 alternating": [(spin, pin) for spin in SPINNING for pin in ("default", "not pinned")],
}
SECONDS = 1.0
"""Seconds for which a process runs its candidate."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rounds", nargs="?", type=int, default=7, help="processes of each candidate")
    parser.add_argument("--worker", nargs=3, metavar=("GROUP", "SPIN", "PIN"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(time_candidate(*options.worker))
        return
    for group, candidates in GROUPS.items():
        times_of: dict[tuple[str, str], list[float]] = {candidate: [] for candidate in candidates}
        for _ in range(options.rounds):
            for candidate in candidates:
                command = [sys.executable, __file__, "--worker", group, *candidate]
                times_of[candidate].append(float(subprocess.check_output(command, text=True)))
        print(group)
        for candidate, times in times_of.items():
            name = ", ".join(filter(None, candidate))
            print(f"  {name:32} {statistics.median(times):8.2f} ms   best {min(times):8.2f} ms")


def time_candidate(group: str, spin: str, pin: str) -> float:
    """Return the median milliseconds of a candidate in this process."""
    run = build_candidate(group, spin, pin)
    times = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def build_candidate(group: str, spin: str, pin: str) -> Callable[[], object]:
    engine, what = group.split(": ")
    if what == "squeezenet":
        return chain([onnxruntime_call(squeezenet(), SPINNING[spin])], np.ones((1, 3, 224, 224), np.float32))
    models = [convolutions(12)] if what == "12 convolutions" else [convolutions(1) for _ in range(12)]
    calls = []
    for number, model in enumerate(models):
        if engine == "openvino" or (engine == "both" and number % 2):
            calls.append(openvino_call(model, PINNING[pin]))
        else:
            calls.append(onnxruntime_call(model, SPINNING[spin]))
    return chain(calls, np.ones(SHAPE, np.float32))


def chain(
    calls: Sequence[Callable[[np.ndarray[Any, Any]], Any]], x: np.ndarray[Any, Any]
) -> Callable[[], object]:
    """Return a call of all calls in sequence, each on the result of the previous one."""

    def run() -> object:
        value = x
        for call in calls:
            value = call(value)
        return value

    return run


def onnxruntime_call(model: bytes, entries: dict[str, str]) -> Callable[[np.ndarray[Any, Any]], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = 2, 1
    options.log_severity_level = 4
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})[0]


def openvino_call(model: bytes, entries: dict[str, str]) -> Callable[[np.ndarray[Any, Any]], Any]:
    import openvino

    core = openvino.Core()
    options = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": "2"}
    options["INFERENCE_PRECISION_HINT"] = "f32"
    compiled = core.compile_model(core.read_model(model), "CPU", options | entries)
    request = compiled.create_infer_request()
    return lambda x: request.infer({0: x}, share_inputs=True, share_outputs=True)[0]


def convolutions(count: int) -> bytes:
    """Return a model of 3x3 convolutions of 64 channels, each followed by Relu."""
    from onnx import helper, numpy_helper

    generator = np.random.default_rng(count)
    nodes, weights = [], []
    for n in range(count):
        weight = 0.05 * generator.standard_normal((64, 64, 3, 3), np.float32)
        weights.append(numpy_helper.from_array(weight.astype(np.float32), f"w{n}"))
        nodes.append(helper.make_node("Conv", [f"x{n}", f"w{n}"], [f"c{n}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{n}"], [f"x{n + 1}"]))
    ends = [helper.make_tensor_value_info(name, 1, SHAPE) for name in ("x0", f"x{count}")]
    graph = helper.make_graph(nodes, "convolutions", ends[:1], ends[1:], weights)
    return bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10
        ).SerializeToString()
    )


def squeezenet() -> bytes:
    from intarsia.frontend.zoo import build_model

    return bytes(build_model("squeezenet", 0).SerializeToString())


if __name__ == "__main__":
    main()
