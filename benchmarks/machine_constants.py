"""Native with the measured machine model against native with the defaults of the CPU's family, interleaved.

`intarsia doctor --calibrate` measures this machine (about 10 s), into a folder of this run. Each model is
then built by two new processes, one of which finds that folder. They are timed interleaved; a ratio is
the median time with the defaults over that with measured constants, the range that of the rounds. The goal is
within 3 % of 1. Where no rule decides otherwise, both have the same kernels, and a ratio is noise.

Usage: python -m benchmarks.machine_constants [NAME or FILE.onnx ...] [--threads N] [--rounds N] [--json]
About 30 s for each model on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from intarsia.frontend.zoo import zoo
from intarsia.target.machine_file import MEASURED, default_machine_model

GOAL: Final = 0.03
"""Largest allowed difference of the geometric mean of the ratios from 1."""
_TURN_SECONDS: Final = 0.15
"""Seconds that each process runs in a round."""

_CHILD: Final = """
import sys, time
import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.measure.inputs import random_inputs
from intarsia.native.graph import PlanOptions, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.scheduled import scheduled
from intarsia.passes import partition_whole
from intarsia.support.digest import digest_text
from intarsia.toolchain.native.simplified import simplified

name, threads, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
module = ia.from_onnx(name if name.endswith(".onnx") else build_model(name))
program = ia.build(partition_whole(module, ia.Target.for_toolchain("native", threads=threads)))
arrays = list(random_inputs(module["main"]).values())
program(*arrays)
isa = Isa.host()
plan = plan_region(simplified(module["main"]), isa, PlanOptions(threads=threads))
states = [str(scheduled(item.dag, isa, item.threads or threads).state) for item in plan.kernels]
print(digest_text([*(str(item.dag) for item in plan.kernels), *states]), flush=True)
for _ in sys.stdin:
    times, began = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - began < seconds:
        before = time.perf_counter()
        program(*arrays)
        times.append(time.perf_counter() - before)
    print(sorted(times)[len(times) // 2], flush=True)
"""


class Contender:
    """A process that has built a model, and times it on request.

    Args:
        name: Name of a model of the zoo, or an .onnx file.
        threads: Number of threads.
        data: Folder of the user's data, in which the machine model may be.
    """

    def __init__(self, name: str, threads: int, data: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, name, str(threads), str(_TURN_SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"XDG_DATA_HOME": str(data)},
        )
        self.kernels = self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def take_turn(self) -> float:
        """Return the median seconds of a run in one turn."""
        assert self._process.stdin is not None
        print(file=self._process.stdin, flush=True)
        return float(self._read())

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise SystemExit("a process ended early; its errors are above")
        return line


@dataclass(frozen=True)
class Comparison:
    """A model with measured constants and with defaults.

    Attributes:
        model: Name of the model.
        measured_ms: Milliseconds of a run with measured constants.
        ratio: Time with the defaults over that, the median of the rounds.
        low: Least ratio of a round.
        high: Largest ratio of a round.
        is_same: Whether both have the same kernels with the same loops.
    """

    model: str
    measured_ms: float
    ratio: float
    low: float
    high: float
    is_same: bool

    def __str__(self) -> str:
        kernels = "same kernels" if self.is_same else "other kernels"
        return (
            f"{self.model:20} {self.measured_ms:9.3f} ms  defaults / measured {self.ratio:.3f} "
            f"({self.low:.3f} to {self.high:.3f})  {kernels}"
        )


def compare(name: str, threads: int, rounds: int, folders: Sequence[Path]) -> Comparison:
    """Build a model with both machine models and time them interleaved.

    Args:
        name: Name of a model of the zoo, or an .onnx file.
        threads: Number of threads.
        rounds: Number of rounds, in which each has one turn.
        folders: Folder with the measured model, and one without.
    """
    with ExitStack() as stack:
        contenders = [stack.enter_context(Contender(name, threads, folder)) for folder in folders]
        times: list[list[float]] = [[], []]
        for number in range(rounds):
            for at in (0, 1) if number % 2 else (1, 0):
                times[at].append(contenders[at].take_turn())
        measured, defaults = times
        ratios = [late / early for early, late in zip(measured, defaults, strict=True)]
        is_same = contenders[0].kernels == contenders[1].kernels
    return Comparison(
        Path(name).stem, 1e3 * min(measured), statistics.median(ratios), min(ratios), max(ratios), is_same
    )


def calibrate(folder: Path) -> dict[str, float]:
    """Measure this machine into a folder, and return the values that differ from the defaults, by name."""
    environment = os.environ | {"XDG_DATA_HOME": str(folder)}
    command = [sys.executable, "-m", "intarsia", "doctor", "--calibrate"]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    (file,) = folder.rglob("*.json")
    measured, default = json.loads(file.read_text("utf-8"))["measured"], default_machine_model()
    return {name: measured[name] for name in MEASURED if measured[name] != getattr(default, name)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=[model.name for model in zoo()])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folders = [Path(folder) / name for name in ("measured", "defaults")]
        for path in folders:
            path.mkdir()
        differing = calibrate(folders[0])
        default = default_machine_model()
        if not options.json:
            changes = (f"{name} {getattr(default, name):g} -> {value:g}" for name, value in differing.items())
            print(f"defaults of {default.family}; measured otherwise: {', '.join(changes) or 'nothing'}")
        results = []
        for name in options.names:
            results.append(compare(name, options.threads, options.rounds, folders))
            if not options.json:
                print(results[-1], flush=True)
    if options.json:
        print(json.dumps({"differing": differing, "models": [asdict(item) for item in results]}, indent=1))
        return
    mean = statistics.geometric_mean(item.ratio for item in results)
    verdict = "within the goal" if abs(mean - 1) <= GOAL else f"MISSES the goal of {GOAL:.0%}"
    same = sum(item.is_same for item in results)
    print(f"geometric mean {mean:.3f} over {len(results)} models, {verdict}; {same} have the same kernels")


if __name__ == "__main__":
    main()
