"""Run a schedule search of apache-tvm (MetaSchedule); needs a Python environment that has it.

Not part of the project: `benchmarks/autoschedule.py --against tvm` makes the environment and calls this.

    tvm_search.py search TASK --folder FOLDER [--trials N] [--seed S] [--threads T] [--repeat-ms MS]
    tvm_search.py serve FOLDER ... [--threads T]

TASK is JSON, {"kind": ..., "sizes": {...}}. `search` prints a JSON line for each candidate (`cost` is null
for one that failed), then one with the split of the time, and leaves the best kernel in the folder as a
shared library. `serve` loads kernels and answers each line `INDEX SECONDS` on its input with the seconds of
one call of that kernel, the mean of as many as fill these seconds.

The schedule may choose the layout of weights (`layout_free_placeholders`); packing them is not part of the
time, as in TVM's own builder. That builder imports the tensor intrinsics of all targets in every new worker,
and starts new workers in every round, which takes more than ten seconds each time. No task needs the
intrinsics, so this script leaves out the import, in favour of TVM. `--as-shipped` uses the builder unchanged.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

LIBRARY, DESCRIPTION, TIMEOUT_SECONDS = "kernel.so", "kernel.json", 30


def tensors(te: Any, kind: str, sizes: Mapping[str, int]) -> list[Any]:
    """Return the declaration of a task: inputs, then the result."""
    match kind:
        case "convolution" | "depthwise":
            return _convolution(te, sizes, is_depthwise=kind == "depthwise")
        case "dense":
            return _product(te, sizes)
        case "softmax":
            return _softmax(te, sizes)
        case "blocked convolution" | "blocked depthwise":
            return _blocked(te, sizes, is_depthwise=kind == "blocked depthwise")
        case _:
            raise ValueError(f"no task {kind!r}")


def _convolution(te: Any, sizes: Mapping[str, int], *, is_depthwise: bool) -> list[Any]:
    size, taps, stride, pad, channels = (sizes[key] for key in ("size", "taps", "stride", "pad", "channels"))
    filters, count = sizes["made"], (size + 2 * pad - taps) // stride + 1
    x = te.placeholder((1, size, size, channels), name="x")
    w = te.placeholder((taps, taps, channels) if is_depthwise else (taps, taps, channels, filters), name="w")
    read = _padded(te, x, pad) if pad else x
    p, q, c = (
        te.reduce_axis((0, extent), name=name) for extent, name in ((taps, "p"), (taps, "q"), (channels, "c"))
    )

    def of_channel(n: Any, i: Any, j: Any, o: Any) -> Any:
        return te.sum(read[n, i * stride + p, j * stride + q, o] * w[p, q, o], axis=[p, q])

    def of_all(n: Any, i: Any, j: Any, o: Any) -> Any:
        return te.sum(read[n, i * stride + p, j * stride + q, c] * w[p, q, c, o], axis=[p, q, c])

    free = {"layout_free_placeholders": [w]}
    shape = (1, count, count, filters)
    return [x, w, te.compute(shape, of_channel if is_depthwise else of_all, name="y", attrs=free)]


def _blocked(te: Any, sizes: Mapping[str, int], *, is_depthwise: bool) -> list[Any]:
    size, taps, stride, pad, lanes = (sizes[key] for key in ("size", "taps", "stride", "pad", "lanes"))
    count, blocks, filter_blocks = (
        (size + 2 * pad - taps) // stride + 1,
        sizes["channels"] // lanes,
        sizes["made"] // lanes,
    )
    x = te.placeholder((1, blocks, size, size, lanes), name="x")
    weight = (
        (blocks, taps, taps, lanes) if is_depthwise else (filter_blocks, blocks, taps, taps, lanes, lanes)
    )
    w, read = te.placeholder(weight, name="w"), _padded(te, x, pad) if pad else x
    axes = (taps, "p"), (taps, "q"), (blocks, "b"), (lanes, "c")
    p, q, b, c = (te.reduce_axis((0, extent), name=name) for extent, name in axes)

    def of_channel(n: Any, o: Any, i: Any, j: Any, v: Any) -> Any:
        return te.sum(read[n, o, i * stride + p, j * stride + q, v] * w[o, p, q, v], axis=[p, q])

    def of_all(n: Any, o: Any, i: Any, j: Any, v: Any) -> Any:
        at = n, b, i * stride + p, j * stride + q, c
        return te.sum(read[at] * w[o, b, p, q, c, v], axis=[b, p, q, c])

    free = {"layout_free_placeholders": [w]}
    shape = (1, filter_blocks, count, count, lanes)
    return [x, w, te.compute(shape, of_channel if is_depthwise else of_all, name="y", attrs=free)]


def _padded(te: Any, x: Any, pad: int) -> Any:
    """Pad the two dimensions before the last one with zeros."""
    tirx = import_module("tvm.tirx")
    *leading, size, _, last = map(int, x.shape)

    def element(*at: Any) -> Any:
        *first, i, j, c = at
        inside = tirx.all(i >= pad, i < size + pad, j >= pad, j < size + pad)
        return tirx.if_then_else(inside, x[(*first, i - pad, j - pad, c)], tirx.const(0.0, "float32"))

    return te.compute((*leading, size + 2 * pad, size + 2 * pad, last), element, name="padded")


def _product(te: Any, sizes: Mapping[str, int]) -> list[Any]:
    rows, columns, depth = (sizes[key] for key in ("rows", "columns", "depth"))
    x, w = te.placeholder((rows, depth), name="x"), te.placeholder((depth, columns), name="w")
    k, free = te.reduce_axis((0, depth), name="k"), {"layout_free_placeholders": [w]}
    y = te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="y", attrs=free)
    return [x, w, y]


def _softmax(te: Any, sizes: Mapping[str, int]) -> list[Any]:
    rows, width = sizes["rows"], sizes["width"]
    x = te.placeholder((rows, width), name="x")
    k, m = te.reduce_axis((0, width), name="k"), te.reduce_axis((0, width), name="m")
    most = te.compute((rows,), lambda i: te.max(x[i, m], axis=m), name="most")
    powers = te.compute((rows, width), lambda i, j: te.exp(x[i, j] - most[i]), name="powers")
    total = te.compute((rows,), lambda i: te.sum(powers[i, k], axis=k), name="total")
    return [x, te.compute((rows, width), lambda i, j: powers[i, j] / total[i], name="y")]


@dataclass
class Progress:
    """Progress of a search.

    Attributes:
        began: Start of the search, by `time.perf_counter`.
        trials: Number of candidates that were measured or failed to build.
        build: Seconds spent waiting for builders.
        run: Seconds spent waiting for runners.
    """

    began: float = field(default_factory=time.perf_counter)
    trials: int = 0
    build: float = 0.0
    run: float = 0.0

    def report(self, cost: float | None) -> None:
        """Print a line for one candidate."""
        self.trials += 1
        _print_facts(trial=self.trials, seconds=time.perf_counter() - self.began, cost=cost)


def _timed_builder(progress: Progress, given: argparse.Namespace) -> Any:
    builders, derived = import_module("tvm.s_tir.meta_schedule.builder"), import_module("tvm.ir.utils")

    class Builder(builders.LocalBuilder._cls):  # type: ignore[misc, name-defined]  # tvm is not installed beside the project
        def build(self, build_inputs: Any) -> Any:
            start = time.perf_counter()
            results = super().build(build_inputs)
            progress.build += time.perf_counter() - start
            for result in results:
                if result.error_msg is not None:
                    progress.report(None)
            return results

    options = {} if given.as_shipped else {"f_build": _build}
    return derived.derived_object(Builder)(max_workers=given.threads, timeout_sec=TIMEOUT_SECONDS, **options)


def _build(module: Any, target: Any, _params: Any) -> Any:
    # Runs in a worker of TVM, which does not import this file: names must be imported here.
    from importlib import import_module

    passes, driver = import_module("tvm.s_tir.transform"), import_module("tvm.driver")
    return driver.build(
        passes.RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=target
    )


def _timed_runner(progress: Progress, given: argparse.Namespace) -> Any:
    runners, derived = import_module("tvm.s_tir.meta_schedule.runner"), import_module("tvm.ir.utils")

    class Runner(runners.LocalRunner._cls):  # type: ignore[misc, name-defined]  # as above
        def run(self, runner_inputs: Any) -> Any:
            futures = []
            for runner_input in runner_inputs:
                start = time.perf_counter()
                futures += super().run([runner_input])
                progress.run += time.perf_counter() - start
                run_seconds = futures[-1].result().run_secs
                progress.report(statistics.median(map(float, run_seconds)) if run_seconds else None)
            return futures

    evaluator = runners.EvaluatorConfig(number=1, repeat=given.repeats, min_repeat_ms=given.repeat_ms)
    return derived.derived_object(Runner)(timeout_sec=TIMEOUT_SECONDS, evaluator_config=evaluator)


def search(given: argparse.Namespace) -> None:
    """Run a search, and print a JSON line for each event."""
    tvm, schedules = import_module("tvm"), import_module("tvm.s_tir.meta_schedule")
    import_module("tvm.s_tir.tensor_intrin")  # imports before the clock starts
    import_module("xgboost")
    task = json.loads(given.task)
    function = tvm.te.create_prim_func(tensors(tvm.te, task["kind"], task["sizes"]))
    cpu = str(tvm.get_global_func("target.llvm_get_system_cpu")())
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": given.threads})
    _print_facts(version=tvm.__version__, target=str(target))
    progress = Progress()  # the time of starting the workers counts
    builder, runner = _timed_builder(progress, given), _timed_runner(progress, given)
    with tempfile.TemporaryDirectory() as folder, schedules.Profiler() as profiler:
        database = schedules.tir_integration.tune_tir(
            mod=function,
            target=target,
            work_dir=folder,
            max_trials_global=given.trials,
            num_trials_per_iter=given.round,
            builder=builder,
            runner=runner,
            database="memory",
            num_tuning_cores=given.threads,
            seed=given.seed + 1,  # TVM accepts seeds from 1
        )
        seconds = time.perf_counter() - progress.began
        parts = {str(name): float(seconds_) for name, seconds_ in profiler.get().items()}
    _print_facts(whole=seconds, build=progress.build, run=progress.run, profile=parts)
    chosen = schedules.tir_integration.compile_tir(database, function, target)
    _export(chosen.mod, target, Path(given.folder))


def _export(module: Any, target: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _build(module, target, None).export_library(str(folder / LIBRARY))
    arguments = import_module("tvm.s_tir.meta_schedule.arg_info").ArgInfo
    packed = arguments.from_entry_func(
        module, remove_preproc=True
    )  # with the layout of the weights that the schedule chose
    shapes = [[int(extent) for extent in argument.shape] for argument in packed]
    (folder / DESCRIPTION).write_text(json.dumps({"shapes": shapes}), "utf-8")


def serve(given: argparse.Namespace) -> None:
    """Load kernels, and time one for each line of the input."""
    tvm, numpy = import_module("tvm"), import_module("numpy")
    device, random, kernels = tvm.cpu(), numpy.random.default_rng(0), []
    for folder in map(Path, given.folders):
        shapes = json.loads((folder / DESCRIPTION).read_text("utf-8"))["shapes"]
        numbers = [random.standard_normal(shape).astype("float32") for shape in shapes]
        arrays = [tvm.runtime.tensor(array, device) for array in numbers]
        kernels.append((tvm.runtime.load_module(str(folder / LIBRARY)), arrays))
    _print_facts(ready=len(kernels))
    for line in sys.stdin:
        index, seconds = line.split()
        module, arrays = kernels[int(index)]
        clock = module.time_evaluator(
            "main", device, number=1, min_repeat_ms=max(1, round(1e3 * float(seconds)))
        )
        _print_facts(cost=float(clock(*arrays).mean))


def _print_facts(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    actions = parser.add_subparsers(required=True)
    searching = actions.add_parser("search")
    searching.add_argument("task")
    searching.add_argument("--folder", required=True)
    searching.add_argument("--trials", type=int, default=64)
    searching.add_argument("--round", type=int, default=64, help="candidates that are measured together")
    searching.add_argument("--seed", type=int, default=0)
    searching.add_argument("--repeats", type=int, default=1)
    searching.add_argument("--repeat-ms", type=int, default=100)
    searching.add_argument("--as-shipped", action="store_true")
    searching.set_defaults(action=search)
    serving = actions.add_parser("serve")
    serving.add_argument("folders", nargs="+")
    serving.set_defaults(action=serve)
    for action in (searching, serving):
        action.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    os.environ["TVM_NUM_THREADS"] = str(given.threads)
    given.action(given)


if __name__ == "__main__":
    main()
