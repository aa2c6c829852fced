"""Single convolutions that are drawn at random, on native by rule and on the engines.

A case is three convolutions of one shape behind each other, each with bias and Relu, so that the conversion
of layouts at the ends counts little. Times are CPU seconds of the process on one thread, the least of
interleaved rounds: they hardly depend on what else the machine does. A ratio is the time of the faster engine
over that of native; above 1 native is faster. `--choices` measures native with other target options as well.

Usage: python -m benchmarks.convolution_layers [--kind grouped|few|dilated|depthwise] [--seed N] [--count N]
       [--seconds S] [--choices="-convolutions=direct;-convolutions=winograd_2"]
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from intarsia.build import build
from intarsia.ir import Constant, Expr, Function, IRModule, TensorType, Var
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target

ENGINES: Final = ("onnxruntime", "openvino")
RULE: Final = "native"
SIZES: Final = (7, 10, 14, 17, 20, 28, 35, 40, 56)


class Case(NamedTuple):
    """A convolution.

    Attributes:
        groups: Number of groups.
        read: Number of input channels of a group.
        written: Number of result channels of a group.
        taps: Rows and columns of the window.
        dilation: Distance of the taps.
        size: Rows and columns of the image.
    """

    groups: int
    read: int
    written: int
    taps: int
    dilation: int
    size: int

    def __str__(self) -> str:
        text = f"{self.groups} x {self.read}->{self.written} {self.taps}x{self.taps} @{self.size}"
        return f"{text} dilated {self.dilation}" if self.dilation > 1 else text


def draw(kind: str, rng: random.Random) -> Case:
    """Draw a case: a few dozen channels for each group, few channels, dense and dilated, or depthwise."""
    size, taps = rng.choice(SIZES), rng.choice((1, 3, 3, 3, 5))
    match kind:
        case "grouped":
            read = rng.choice((12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 64))
            written = read if rng.random() < 0.6 else rng.choice((12, 16, 24, 32, 40, 48))
            return Case(rng.choice((2, 3, 4, 6, 8, 16)), read, written, taps, 1, size)
        case "few":
            read = rng.randint(2, 12)
            return Case(rng.choice((4, 8, 16, 32)), read, rng.choice((read, 2, 4, 6, 8, 10)), taps, 1, size)
        case "dilated":
            channels = rng.choice((16, 24, 32, 48, 64, 96, 128))
            return Case(1, channels, channels, 3, rng.choice((2, 2, 3, 4, 6, 8)), size)
        case _:
            channels = rng.choice((16, 24, 32, 48, 64, 96, 144, 192))
            return Case(channels, 1, 1, rng.choice((3, 3, 5, 7)), rng.choice((1, 2, 3, 4, 6)), size)


def program(case: Case) -> IRModule:
    """Return the program of a case."""
    generator = np.random.default_rng(0)
    channels = case.groups * case.read, case.groups * case.written
    data = np.zeros((1, channels[0], case.size, case.size), np.float32)
    x = Var("x", checked_type=TensorType.of(data))
    result: Expr = x
    for read, written in (channels, channels[::-1], channels):
        shape = (written, read // case.groups, case.taps, case.taps)
        weight = generator.standard_normal(shape) / (case.taps * shape[1] ** 0.5)
        bias = Constant(generator.standard_normal(written).astype(np.float32))
        pads, dilations = (case.taps // 2 * case.dilation,) * 4, (case.dilation,) * 2
        taps = Constant(weight.astype(np.float32))
        conv = call("Conv", result, taps, bias, pads=pads, dilations=dilations, group=case.groups)
        result = call("Relu", conv)
    return IRModule.from_expr(Function((x,), call("GlobalAveragePool", result)))


def least_seconds(calls: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Return the least CPU seconds of each call over interleaved rounds."""
    least = dict.fromkeys(calls, np.inf)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, run in calls.items():
            run()
            count, begun = 0, time.process_time()
            while count < 1 or time.process_time() - begun < 0.005:
                run()
                count += 1
            least[name] = min(least[name], (time.process_time() - begun) / count)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kind", choices=("grouped", "few", "dilated", "depthwise"), default="grouped")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--choices", default="")
    options = parser.parse_args()
    rng, ratios = random.Random(options.seed), []
    texts = {RULE: "cpu -toolchain=native -threads=1"}
    texts |= {text: f"{texts[RULE]} {text}" for text in filter(None, options.choices.split(";"))}
    texts |= {name: f"cpu -toolchain={name} -threads=1" for name in ENGINES}
    for _ in range(options.count):
        case = draw(options.kind, rng)
        module = program(case)
        programs = {name: build(partition_whole(module, Target.parse(text))) for name, text in texts.items()}
        shape = (1, case.groups * case.read, case.size, case.size)
        data = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        calls = {name: partial(item.run_flat, data) for name, item in programs.items()}
        least = least_seconds(calls, options.seconds)
        ratios.append(min(least[name] for name in ENGINES) / least[RULE])
        times = ", ".join(f"{name} {1e3 * took:.3f}" for name, took in least.items())
        print(f"{case}: {ratios[-1]:.2f}; ms: {times}", flush=True)
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.3f}, least {min(ratios):.3f}")


if __name__ == "__main__":
    main()
