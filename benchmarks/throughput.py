"""Requests per second, and latencies under load, beside onnxruntime and OpenVINO at their best settings.

Each model is tuned with the objective "throughput". onnxruntime runs bare: one session called by many
threads, and a session for each, with each division of the cores; OpenVINO with its THROUGHPUT hint and as
many requests as it recommends, and with its streams and threads set to each division. OpenVINO runs in
float32, as the others do, and once more in its default precision, which is bfloat16 on CPUs that have it. The
best setting of each is found first. Then the winners run interleaved: at saturation (a closed loop), and in
an open loop with Poisson arrivals at 0.7 of the lowest rate, where latencies count from the time at which a
request was due.

In the closed loop the thread that ends a request of Intarsia or onnxruntime sends the next one; OpenVINO
cannot start a request in a callback, so that a thread of the generator sends its requests.

The ratio is Intarsia's requests per second over those of the better engine in float32. "CPU" is the time of
all threads for a request at saturation, which depends less on other load of the machine than rates do.

    python -m benchmarks.throughput [MODEL ...] [--budget 20s] [--seconds 2] [--rounds 5] [--concurrency N]
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import intarsia as ia
from intarsia.driver.stream_search.search_streams import UTILISATION, stream_choices
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.measure.inputs import random_inputs
from intarsia.measure.load.generate_load import Submit, run_chained_loop, run_closed_loop, run_open_loop
from intarsia.measure.load.load_result import LoadResult
from intarsia.target.cpu import usable_cores

MODELS = (
    "mnist", "squeezenet", "mobilenet_v2", "shufflenet", "resnet50", "bert_tiny", "gpt2_tiny", "lstm",
)  # fmt: skip
FLOAT32 = {"INFERENCE_PRECISION_HINT": "f32"}
DEFAULT_PRECISION = "openvino default"
Inputs: TypeAlias = dict[str, Any]
Loop: TypeAlias = Callable[[Submit, int, float], LoadResult]
Way: TypeAlias = Callable[[], AbstractContextManager["Contender"]]


@dataclass(eq=False)
class Contender:
    """A way to serve a model."""

    setting: str
    submit: Submit
    loop: Loop = run_chained_loop
    rates: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    loads: list[LoadResult] = field(default_factory=list)

    def saturate(self, concurrency: int, seconds: float) -> None:
        """Add the rate at saturation, and the CPU time of a request."""
        begun = time.process_time()
        load = self.loop(self.submit, concurrency, seconds)
        self.rates.append(load.rate)
        self.cpu_ms.append(1e3 * (time.process_time() - begun) / max(1, load.requests))

    def median(self, quantile: str) -> float:
        """Return the median over the rounds of a quantile, in milliseconds."""
        return 1e3 * float(statistics.median(getattr(load, quantile) for load in self.loads))


@contextmanager
def intarsia_pool(module: Any, inputs: Inputs, options: argparse.Namespace) -> Iterator[Contender]:
    result = ia.tune(
        module, budget=options.budget, inputs=inputs, objective="throughput", concurrency=options.concurrency
    )
    given = {info.name: inputs[info.name] for info in result.executable.inputs}
    with ia.Pool(result.executable) as pool:
        choice = pool.choice
        name = f"{result.streams[0].name} {choice.streams}x{choice.threads}"
        yield Contender(name, lambda _: pool.submit(given))
    result.executable.close()


@contextmanager
def onnxruntime_sessions(
    model: bytes, inputs: Inputs, streams: int, threads: int, is_shared: bool
) -> Iterator[Contender]:
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    sessions = [
        onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
        for _ in range(1 if is_shared else streams)
    ]
    with ThreadPoolExecutor(streams) as executor:

        def submit(number: int) -> Future[Any]:
            return executor.submit(sessions[number % len(sessions)].run, None, inputs)

        yield Contender(f"{streams}x{threads}{' shared' if is_shared else ''}", submit)


@contextmanager
def openvino_queue(model: bytes, inputs: Inputs, settings: dict[str, str], name: str) -> Iterator[Contender]:
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", settings)
    queue = openvino.AsyncInferQueue(compiled)  # as many requests as OpenVINO recommends

    def end(request: Any, future: Future[Any]) -> None:
        future.set_result({port: tensor.copy() for port, tensor in request.results.items()})

    queue.set_callback(end)

    def submit(_: int) -> Future[Any]:
        future: Future[Any] = Future()
        queue.start_async(inputs, future)
        return future

    # A callback cannot start a request: its own still counts as busy, and no other may be idle.
    yield Contender(name, submit, run_closed_loop)
    queue.wait_all()


def engine_settings(model: bytes, inputs: Inputs, concurrency: int) -> dict[str, list[Way]]:
    """Return the ways in which each engine may be set up."""
    cores = usable_cores(Path("/"))
    pairs = [(choice.streams, choice.threads) for choice in stream_choices(cores, concurrency, (1, 1))]
    sessions: list[Way] = [
        partial(onnxruntime_sessions, model, inputs, *pair, is_shared)
        for pair in pairs
        for is_shared in (True, False)
        if not (is_shared and pair[0] == 1)
    ]
    settings = {"hint": {"PERFORMANCE_HINT": "THROUGHPUT"}}
    for streams, threads in pairs:
        values = {"NUM_STREAMS": str(streams), "INFERENCE_NUM_THREADS": str(streams * threads)}
        settings[f"{streams}x{threads}"] = values
    queues: dict[str, list[Way]] = {
        engine: [
            partial(openvino_queue, model, inputs, {**values, **precision}, name)
            for name, values in settings.items()
        ]
        for engine, precision in (("openvino", FLOAT32), (DEFAULT_PRECISION, {}))
    }
    return {"onnxruntime": sessions, **queues}


def best_setting(ways: list[Way], concurrency: int, seconds: float) -> Way:
    rates = []
    for way in ways:
        with way() as contender:
            contender.loop(contender.submit, concurrency, seconds / 4)
            rates.append(contender.loop(contender.submit, concurrency, seconds / 2).rate)
    return ways[rates.index(max(rates))]


def compare(name: str, options: argparse.Namespace) -> float:
    """Print the row of a model, and return the ratio to the better engine."""
    proto = build_model(name)
    module = from_onnx(proto)
    inputs = random_inputs(module["main"])
    concurrency = options.concurrency or 4 * usable_cores(Path("/"))
    ways = engine_settings(proto.SerializeToString(), inputs, concurrency)
    with ExitStack() as opened:
        contenders = {
            engine: opened.enter_context(best_setting(settings, concurrency, options.seconds)())
            for engine, settings in ways.items()
        }
        contenders["intarsia"] = opened.enter_context(intarsia_pool(module, inputs, options))
        for _ in range(options.rounds):
            for contender in contenders.values():
                contender.saturate(concurrency, options.seconds)
        rates = {engine: statistics.median(contender.rates) for engine, contender in contenders.items()}
        arrival_rate = UTILISATION * min(rates.values())
        for number in range(options.rounds):
            for contender in contenders.values():
                load = run_open_loop(contender.submit, arrival_rate, options.seconds, number)
                contender.loads.append(load)
        ratio = float(rates["intarsia"] / max(rates["onnxruntime"], rates["openvino"]))
        for engine, contender in contenders.items():
            quantiles = " ".join(f"{contender.median(item):9.2f}" for item in ("p50", "p95", "p99"))
            other = rates["intarsia"] / rates[DEFAULT_PRECISION]
            end = f"  ratio {ratio:.2f} ({other:.2f})" if engine == "intarsia" else ""
            cpu = statistics.median(contender.cpu_ms)
            row = f"{name:14} {engine:16} {contender.setting:28} {rates[engine]:9.0f} {cpu:8.2f}"
            print(f"{row} {quantiles}{end}", flush=True)
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--budget", default="20s", help="time to tune a model")
    parser.add_argument("--seconds", type=float, default=2.0, help="time of a contender in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--concurrency", type=int, help="requests under way; 4 for each core")
    options = parser.parse_args()
    head = f"{'model':14} {'engine':16} {'setting':28} {'request/s':>9} {'CPU, ms':>8}"
    print(f"{head} {'p50, ms':>9} {'p95':>9} {'p99':>9}  ratio in float32 (to OpenVINO's default)")
    ratios = [compare(name, options) for name in options.models]
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"ratio to the better engine: geometric mean {mean:.2f}, smallest {min(ratios):.2f}")


if __name__ == "__main__":
    main()
