"""Ablation: how much each optimisation of native, and each decision of `tune`, speeds up whole models.

A ratio is the time without an optimisation over the time with all of them; above 1 it makes the model faster.
All variants of a model are measured interleaved. The plot has a row for each optimisation and a mark for each
model; it needs matplotlib (pip install "intarsia[plots]"). With --tuned each model is also tuned for BUDGET
with every kind of decision, and again without each of them.

Usage: python -m benchmarks.ablation [NAME ...] [--threads N] [--seconds S] [--tuned BUDGET]
       [--plot FILE.svg] [--json] [--markdown]
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import intarsia as ia
from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import IRModule
from intarsia.measure.database import Database
from intarsia.measure.inputs import random_inputs
from intarsia.measure.timing.interleaved import RatioInterval, time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.target import Target
from intarsia.target.cpu import usable_cores

MODELS: Final = (
    *("squeezenet", "mobilenet_v2", "resnet50", "densenet121", "vgg19", "unet"),
    *("efficientnet_b0", "convnext_tiny", "bert_base", "gpt2"),
)


def _native(**options: Any) -> Callable[[IRModule, int], Target]:
    return lambda _, threads: Target.for_toolchain("native", threads=threads, **options)


FAMILIES: Final[Mapping[str, Callable[[IRModule, int], Target]]] = {
    "Winograd's transforms": _native(convolutions="direct"),
    "channels in blocks": _native(blocked=False),
    "fused operators": _native(fused=False),
    "weights prefetched": _native(prefetch=False),
    "attention in one kernel": _native(attention=False),
    "vectors of 64 bytes": _native(wide_vectors=False),
    "own kernels (onnxruntime alone)": lambda _, threads: Target.for_toolchain(
        "onnxruntime", threads=threads
    ),
    "own kernels (openvino alone)": lambda _, threads: Target.for_toolchain("openvino", threads=threads),
}
"""Optimisations by name, each with the target that switches it off."""

TUNED: Final[Mapping[str, Mapping[str, Any]]] = {
    "decisions of tuning passes": {"passes": ()},
    "parts on several toolchains": {"partitions": False},
}
"""Kinds of decisions by name, each with the options of `tune` that switch it off."""


def measure_without_decisions(
    name: str, threads: int, seconds: float, budget: str
) -> dict[str, RatioInterval]:
    """Tune a model without each kind of decision, and return the ratios of its times to those with all."""
    module = from_onnx(build_model(name))
    programs = {}
    for family, without in {"all": {}, **TUNED}.items():
        with TemporaryDirectory() as folder, Database.open(Path(folder, "measurements.db")) as database:
            result = ia.tune(module, budget=budget, threads=threads, database=database, **without)
            programs[family] = result.executable
    return _measure_ratios(module, programs, list(TUNED), seconds)


def measure_without_optimisations(name: str, threads: int, seconds: float) -> dict[str, RatioInterval]:
    """Build a model without each optimisation, and return the ratios of its times to those with all."""
    module = from_onnx(build_model(name))
    targets = {"all": Target.for_toolchain("native", threads=threads)}
    targets |= {family: target(module, threads) for family, target in FAMILIES.items()}
    programs = {family: build(partition_whole(module, target)) for family, target in targets.items()}
    return _measure_ratios(module, programs, list(FAMILIES), seconds)


def _measure_ratios(
    module: IRModule, programs: Mapping[str, Executable], families: Sequence[str], seconds: float
) -> dict[str, RatioInterval]:
    """Time programs interleaved, and return the ratio of each one without a family to the one with all."""
    inputs = random_inputs(module["main"])
    arrays = [inputs[info.name] for info in programs["all"].inputs]
    calls = {name: (lambda program=program: program.run_flat(*arrays)) for name, program in programs.items()}
    measured = time_interleaved(calls, TimingPolicy(max_seconds=seconds / len(programs)))
    for program in programs.values():
        program.close()
    return {family: measured.ratio(family, "all") for family in families}


def plot(ratios: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Write an SVG file: a row for each family, a mark for each model, time on a logarithmic axis."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    families = list(next(iter(ratios.values())))
    figure, axes = plt.subplots(figsize=(8, 0.6 * len(families) + 1.5))
    for model, ratio_by_family in ratios.items():
        axes.plot(list(ratio_by_family.values()), range(len(ratio_by_family)), "o", alpha=0.7, label=model)
    axes.set_yticks(range(len(families)), [f"without {family}" for family in families])
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("time relative to that with all")
    axes.invert_yaxis()
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--threads", type=int, default=usable_cores(Path("/")))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--tuned", metavar="BUDGET")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    separator = " | " if options.markdown else "  "
    intervals: dict[str, dict[str, RatioInterval]] = {}
    families = [*FAMILIES, *(TUNED if options.tuned else ())]
    if not options.json:
        print(separator.join(("model", *families)))
        if options.markdown:
            print("|".join("---" for _ in ("model", *families)))
    for name in options.names:
        intervals[name] = measure_without_optimisations(name, options.threads, options.seconds)
        if options.tuned:
            intervals[name] |= measure_without_decisions(
                name, options.threads, options.seconds, options.tuned
            )
        if not options.json:
            cells = (
                f"{ratio.ratio:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
                for ratio in intervals[name].values()
            )
            print(separator.join((name, *cells)), flush=True)
    ratios = {
        name: {family: interval.ratio for family, interval in by_family.items()}
        for name, by_family in intervals.items()
    }
    if options.json:
        print(json.dumps(ratios, indent=2))
    elif ratios:
        means = (
            statistics.geometric_mean(by_family[family] for by_family in ratios.values())
            for family in families
        )
        print(separator.join(("geometric mean", *(f"{mean:.2f}" for mean in means))))
    if options.plot is not None:
        plot(ratios, options.plot)


if __name__ == "__main__":
    main()
