"""Contenders that are timed interleaved on one layer, each in a process of its own.

A process is stopped while another one is timed: ONNX Runtime's threads would spin for a tenth of a second
after a call, on the cores of the others.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import onnx
from benchmarks.sweep.case import Case
from benchmarks.sweep.contender import DEFAULT, LATENCY, PLAIN_LAYOUT
from benchmarks.sweep.families import properties_of, write_layer
from benchmarks.sweep.half_layers import HALF, arrays_in_half, model_in_half

from intarsia.native.roofline import Roofline

Array = npt.NDArray[Any]

NATIVE: Final = "native"
ENGINES: Final = ("onnxruntime", "openvino")
CONTENDERS: Final = (
    (NATIVE, DEFAULT),
    ("onnxruntime", DEFAULT),
    ("onnxruntime", PLAIN_LAYOUT),
    ("openvino", DEFAULT),
    ("openvino", LATENCY),
)
"""Toolchains and their settings."""
TOLERANCE: Final = {"float32": 1e-4, HALF: 4e-3}
"""Largest difference between results, relative to the largest element of the engine's, by element type."""
_ISA_OF_CPU: Final = {"haswell": "AVX2", "znver3": "AVX2"}
"""oneDNN's name of the instruction set of a CPU."""
_TRIALS: Final = 2
"""Rounds after which the slower setting of each engine is left out."""
_LOADED_WITHIN: Final = 180.0
_TURN_WITHIN: Final = 60.0

_MEASURE_ROOFLINE: Final = """
import dataclasses, json, sys
from intarsia.native.machine.isa import Isa
from intarsia.native.roofline import Roofline
print(json.dumps(dataclasses.asdict(Roofline.measured(Isa.host(), int(sys.argv[1])))))
"""


def measure_roofline(threads: int) -> Roofline:
    """Measure the roofline of this machine in a process of its own."""
    command = [sys.executable, "-c", _MEASURE_ROOFLINE, str(threads)]
    return Roofline(**json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


@dataclass(frozen=True)
class Turns:
    """How long the contenders of a layer are timed.

    Attributes:
        rounds: Number of rounds, in each of which every contender has one turn.
        seconds: Seconds of a turn.
        threads: Number of threads of each contender.
        cpu: Name of the CPU whose instructions are used where they can be limited; "" for all of this one.
        element: Type of the floats of drawn layers.
    """

    rounds: int
    seconds: float
    threads: int
    cpu: str = ""
    element: str = "float32"


class Contender:
    """The process of a toolchain with one setting, and its child that has the current layer.

    Args:
        name: Name of the toolchain.
        setting: Name of the setting.
        cpu: CPU that native generates code for, and whose instructions oneDNN is limited to; "" for this one.
            ONNX Runtime has no such limit.
    """

    def __init__(self, name: str, setting: str, cpu: str = "") -> None:
        self.name = name
        self.setting = cpu if cpu and name == NATIVE else setting
        self._limits = {"ONEDNN_MAX_CPU_ISA": _ISA_OF_CPU[cpu]} if cpu else {}
        self._child: int | None = None
        self._start()

    def _start(self) -> None:
        # Threads of a library that numpy loads would be lost in the children.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment |= self._limits
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.sweep.contender", self.name, self.setting],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=True,
        )
        reply = self.read(_LOADED_WITHIN)
        if reply.get("threads") != 1:
            raise RuntimeError(f"the process of {self.name} cannot be forked: {reply}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a request, to which `read` returns the reply; the child runs until then."""
        self._signal(signal.SIGCONT)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def read(self, within: float) -> dict[str, Any]:
        """Return the reply to the last request, or an error if none comes within some seconds."""
        line = self._read_line(within)
        if not line.endswith(b"\n"):
            self._kill()
            self._start()
            return {"error": f"no reply within {within:.0f} s"}
        reply = dict(json.loads(line))
        if "median" not in reply:
            self._child = reply.get("process")
        self._signal(signal.SIGSTOP)
        return reply

    def request(self, message: Mapping[str, Any], within: float) -> dict[str, Any]:
        """Send a request and return the reply."""
        self.send(message)
        return self.read(within)

    def _read_line(self, within: float) -> bytes:
        assert self._process.stdout is not None
        line, deadline = b"", time.monotonic() + within
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    break
                part = self._process.stdout.read(1 << 16)
                if not part:
                    break
                line += part
        return line

    def _signal(self, number: signal.Signals) -> None:
        """Stop or continue the child, if there is one."""
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, number)

    def _kill(self) -> None:
        """End the process and its child."""
        self._child = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@dataclass
class LoadedContender:
    """A contender that has compiled the current layer, or has refused it.

    Attributes:
        contender: Its process.
        build_seconds: Seconds that it took to compile, beside the others.
        error: Why it has no times, or None.
        times: Median seconds per call in each of its turns.
        least: Least seconds of a call.
    """

    contender: Contender
    build_seconds: float
    error: str | None
    times: list[float] = field(default_factory=list)
    least: float = math.inf

    def take_turn(self, seconds: float) -> None:
        """Time the program; infinity if the contender has failed."""
        if self.error is None:
            reply = self.contender.request({"seconds": seconds}, _TURN_WITHIN)
            self.error = reply.get("error")
            self.least = min(self.least, float(reply.get("least", "inf")))
            self.times.append(float(reply.get("median", "inf")))
        else:
            self.least = math.inf
            self.times.append(math.inf)


def measure_layer(
    case: Case, contenders: Sequence[Contender], turns: Turns, roofline: Roofline, folder: Path
) -> dict[str, Any]:
    """Build a layer with all contenders, compare their results, time them interleaved, and return the record.

    Args:
        case: The layer.
        contenders: Processes of the toolchains.
        turns: Number and length of their turns.
        roofline: Roofline of this machine with that many threads.
        folder: Folder for the model, inputs and results.
    """
    layer = write_layer(case)
    model, inputs = folder / "layer.onnx", folder / "inputs.npz"
    is_half = turns.element == HALF
    onnx.save(model_in_half(layer.model()) if is_half else layer.model(), model)
    arrays: dict[str, Any] = arrays_in_half(layer.arrays()) if is_half else layer.arrays()
    np.savez(inputs, **arrays)
    record: dict[str, Any] = {
        "case": case.text,
        "family": case.family,
        "properties": properties_of(case),
        "bound": roofline.bound(layer.operations, layer.bytes // 2 if is_half else layer.bytes),
        "tolerance": TOLERANCE[turns.element],
    }
    record |= measure_model(model, inputs, contenders, turns, folder)
    return record | {"of_bound": share_of_bound(record["least"].get(NATIVE, math.inf), record["bound"])}


def measure_model(
    model: Path, inputs: Path, contenders: Sequence[Contender], turns: Turns, folder: Path
) -> dict[str, Any]:
    """Compile a model with all contenders, compare results, time them interleaved; return the record.

    Args:
        model: ONNX file of the model.
        inputs: The .npz file of its inputs.
        contenders: Processes of the toolchains.
        turns: Number and length of their turns.
        folder: Folder for the results.
    """
    record: dict[str, Any] = {}
    with ExitStack() as stack:
        for contender in contenders:
            stack.callback(contender.request, {"close": True}, _TURN_WITHIN)
        loaded = _load(model, inputs, contenders, turns.threads, folder)
        record["build_seconds"] = {_label(item): item.build_seconds for item in loaded}
        record |= _compare_results(loaded, folder)
        timed = _time_rounds(loaded, turns)
    record["settings"] = {item.contender.name: item.contender.setting for item in timed}
    record["errors"] = {item.contender.name: item.error for item in timed if item.error is not None}
    least = {item.contender.name: item.least for item in timed}
    record["least"] = {name: seconds for name, seconds in least.items() if np.isfinite(seconds)}
    record["least_ratio"] = ratio_of_least(least)
    return record | summarise_times({item.contender.name: item.times for item in timed})


def _label(item: LoadedContender) -> str:
    return f"{item.contender.name}, {item.contender.setting}"


def _load(
    model: Path, inputs: Path, contenders: Sequence[Contender], threads: int, folder: Path
) -> list[LoadedContender]:
    """Have all contenders compile a model at the same time."""
    files = {"model": str(model), "inputs": str(inputs)}
    for contender in contenders:
        results = str(folder / _results_name(contender))
        contender.send({**files, "results": results, "threads": threads})
    replies = [contender.read(_LOADED_WITHIN) for contender in contenders]
    return [
        LoadedContender(contender, reply.get("build_seconds", 0.0), reply.get("error"))
        for contender, reply in zip(contenders, replies, strict=True)
    ]


def _results_name(contender: Contender) -> str:
    return f"{contender.name} {contender.setting}.npz"


def _compare_results(loaded: Sequence[LoadedContender], folder: Path) -> dict[str, Any]:
    """Return native's error against the first engine that runs the layer, and that between the engines."""
    results: dict[str, list[Array]] = {}
    for item in loaded:
        if item.error is None and item.contender.name not in results:
            with np.load(folder / _results_name(item.contender)) as file:
                results[item.contender.name] = list(file.values())
    engines = [results[name] for name in ENGINES if name in results]
    errors: dict[str, Any] = {"error": None, "engines_differ": None}
    if engines and NATIVE in results:
        errors["error"] = largest_difference(results[NATIVE], engines[0])
    if len(engines) == len(ENGINES):
        errors["engines_differ"] = largest_difference(engines[1], engines[0])
    return errors


def largest_difference(results: Sequence[Array], expected: Sequence[Array]) -> float:
    """Return the largest difference between results, relative to the largest element that is expected."""
    worst = 0.0
    for result, right in zip(results, expected, strict=True):
        if result.shape != right.shape:
            return math.inf
        if right.size:
            scale = float(np.abs(right).max()) or 1.0
            difference = float(np.abs(result.astype(np.float64) - right).max()) / scale
            worst = max(worst, difference if np.isfinite(difference) else math.inf)
    return worst


def _time_rounds(loaded: Sequence[LoadedContender], turns: Turns) -> list[LoadedContender]:
    """Time all contenders; after some rounds, leave out the slower setting of each engine."""
    timed = list(loaded)
    for number in range(turns.rounds):
        if number == _TRIALS:
            timed = faster_settings(timed)
        # Each contender is the first one about equally often.
        first = number % len(timed)
        for item in (*timed[first:], *timed[:first]):
            item.take_turn(turns.seconds)
    return faster_settings(timed)


def faster_settings(loaded: Sequence[LoadedContender]) -> list[LoadedContender]:
    """Return each toolchain with the setting that has the shortest time."""
    fastest: dict[str, LoadedContender] = {}
    for item in loaded:
        best = fastest.setdefault(item.contender.name, item)
        if item.least < best.least:
            fastest[item.contender.name] = item
    return list(fastest.values())


def ratio_of_least(least: Mapping[str, float]) -> float | None:
    """Return the ratio of the shortest calls, which other processes disturb least; None without both.

    Args:
        least: Least seconds of each toolchain; infinity if it has failed.
    """
    native, best = least[NATIVE], min(least[name] for name in ENGINES)
    return best / native if np.isfinite([native, best]).all() else None


def share_of_bound(least: float, bound: float) -> float | None:
    """Return the share of the roofline that native's shortest call reaches; None if it has failed.

    Args:
        least: Seconds of the call; infinity if native has failed.
        bound: Least seconds of this layer on this machine.
    """
    return bound / least if np.isfinite(least) else None


def summarise_times(times: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return medians and ratios of the contenders' times.

    Args:
        times: Seconds of each toolchain in each round; infinity if it has failed.
    """
    medians = {name: statistics.median(values) for name, values in times.items()}
    best = min(medians[name] for name in ENGINES)
    ratio, spread = None, None
    if np.isfinite(medians[NATIVE]) and np.isfinite(best):
        ratio = best / medians[NATIVE]
        rounds = zip(times[NATIVE], *(times[name] for name in ENGINES), strict=True)
        ratios = [min(engines) / native for native, *engines in rounds]
        spread = [min(ratios), max(ratios)]
    seconds = {name: value for name, value in medians.items() if np.isfinite(value)}
    return {"seconds": seconds, "ratio": ratio, "range": spread}
