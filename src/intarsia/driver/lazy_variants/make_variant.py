"""Make a variant of an artifact for some sizes: in a process of its own, with low priority.

Usage: python -m intarsia.driver.lazy_variants.make_variant ARTIFACT SIZES OUT TARGET [TARGET ...]
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from intarsia.build import build
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.measure.inputs import input_set, random_inputs
from intarsia.measure.inputs.input_kinds import InputKind
from intarsia.measure.judge.gate import Gate
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.measure.whole_run import run_arrays
from intarsia.passes import bind_sizes, partition_whole
from intarsia.passes.without_toolchains import without_toolchains
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target

LEAST_GAIN: Final = 1.05
"""Minimum ratio of the artifact's time to that of a variant. Other work disturbs the measurement."""

_NICE: Final = 19
_POLICY: Final = TimingPolicy(max_seconds=1.0)


def make_variant(artifact: Path, sizes: Mapping[str, int], out: Path, targets: Sequence[Target]) -> str:
    """Build the program of an artifact for some sizes, and save it if it is right and faster.

    The artifact's own results are the expected ones: it was verified when it was tuned.

    Args:
        artifact: Path of the artifact.
        sizes: Size of each symbolic dimension, by name.
        out: Path of the artifact of the variant.
        targets: Targets that may compile it; the fastest one does.

    Returns:
        Why nothing was saved; "" if the variant was saved.
    """
    with load(artifact) as program:
        parsed = parse_module(program.program, program.provenance.program_constants)
        module = bind_sizes(without_toolchains(parsed), sizes)
        inputs = _input_sets(module)
        gates = [Gate.known(module, run_arrays(program, item)) for item in inputs]
        reasons: list[str] = []
        best: Executable | None = None
        most = LEAST_GAIN
        for target in targets:
            try:
                variant = build(partition_whole(module, target))
                if reason := _wrong(variant, inputs, gates):
                    reasons.append(f"{target.toolchain}: {reason}")
                    continue
                gain = _gain(program, variant, inputs[0])
            except IntarsiaError as error:
                reasons.append(f"{target.toolchain}: {error.problem}")
                continue
            if gain < LEAST_GAIN:
                reasons.append(f"{target.toolchain} is {gain:.2f} times as fast as the program for any size")
            elif gain > most or best is None:
                best, most = variant, gain
        if best is None:
            return "; ".join(reasons)
        best.save(out)
    return ""


def _input_sets(module: IRModule) -> list[dict[str, Array]]:
    """Return ordinary inputs, and large ones."""
    main = module["main"]
    ordinary = random_inputs(main, 0)
    return [ordinary, input_set(main, ordinary, InputKind.LARGE)]


def _wrong(variant: Executable, inputs: Sequence[Mapping[str, Array]], gates: Sequence[Gate]) -> str:
    """Return what is wrong with the results of a variant; "" if they are right."""
    for item, gate in zip(inputs, gates, strict=True):
        report = gate.check(run_arrays(variant, item))
        if not report.passed:
            return report.message
    return ""


def _gain(program: Executable, variant: Executable, inputs: Mapping[str, Array]) -> float:
    """Return how many times as fast the variant is."""
    calls = {
        "program": partial(run_arrays, program, inputs),
        "variant": partial(run_arrays, variant, inputs),
    }
    return time_interleaved(calls, _POLICY).ratio("program", "variant").ratio


def main(arguments: Sequence[str]) -> None:
    """Make a variant by the arguments, and write why there is none as the last line, in JSON."""
    os.nice(_NICE)
    artifact, sizes, out, *targets = arguments
    try:
        reason = make_variant(Path(artifact), json.loads(sizes), Path(out), [*map(Target.parse, targets)])
    except IntarsiaError as error:
        reason = error.problem
    sys.stdout.write(f"\n{json.dumps(reason)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
