"""Native kernels on an NVIDIA GPU: models of the zoo against float64, and layers beside torch's.

Programs are compiled on the cores of the CPU ahead of their turns. Each part of a row is measured in a
process of its own, so that a fault, a crash or a hang loses that part only, and each result is written as
soon as it is there, as one JSON object a line: first layers beside torch's (cuBLAS and cuDNN), then all
models on native, then models on the other toolchains for GPUs, eager torch and inductor first. A toolchain
that is not usable has one line that says why. Times are those of the GPU's events: the median of 20 batches
of runs over copies of the inputs, without copies from the host (`benchmarks.gpu_timing`). Errors are
relative to the norm of the result in float64: of NumPy for layers, of native on the CPU for models. Without
a driver or a GPU it prints that, and ends with exit code 2.
`--check` needs no GPU: it compiles all rows for sm_80, and prints the registers and spills that ptxas finds.
`--check --levels` goes through the levels of proof with ONNX's node tests of the zoo's operators as well, or
of those named by `--operators`: see `benchmarks.gpu_levels`.
Usage: python -m benchmarks.gpu [--seconds 540] [--output gpu.jsonl] [--rows NAME ...] [--check [--levels]]
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks.gpu_layers import layers
from benchmarks.gpu_levels import check_levels
from benchmarks.gpu_rows import Row, check, compiled, engine_row, inputs_of, measure, program_of, why_unusable

from intarsia.frontend.zoo import zoo
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.driver import LIBRARY, CudaDriver
from intarsia.support.errors import IntarsiaError, MissingToolchainError
from intarsia.toolchain.native.gpu.gpu_kernel import OLDEST, model_for

NO_DEVICE: Final = 2
"""Exit code without a driver or a GPU: that of a usage error."""
ENGINES: Final = (
    *("torch", "torch -compiled=true -max_autotune=true", "onnxruntime", "torch -compiled=true"),
    *("onnxruntime -provider=tensorrt", "tensorrt"),
)
"""Toolchains beside native, with options of their targets, the usual rivals first."""
ROW_SECONDS: Final = 60.0
"""Most time of a part of a row."""


def row_of_child(arguments: Sequence[str], row: Row, seconds: float) -> Row:
    """Measure in a process of its own; return its last line, with what went wrong after it.

    Args:
        arguments: Arguments of this command for the child.
        row: Contents of the row if the child prints nothing.
        seconds: Most time.
    """
    command, problem = [sys.executable, "-m", "benchmarks.gpu", *arguments], ""
    try:
        child = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
        output = child.stdout
        if child.returncode:
            words = child.stderr.decode(errors="replace").strip()[-500:]
            problem = words or f"exit code {child.returncode}"
    except subprocess.TimeoutExpired as error:
        output, problem = error.stdout or b"", f"not done after {seconds:.0f} s"
    whole = output.decode(errors="replace").rpartition("\n")[0].splitlines()  # the last may be cut off
    rows = [line for line in whole if line.startswith("{")]  # libraries print other lines
    last: Row = json.loads(rows[-1]) if rows else row
    return last | {"problem": problem} if problem else last


def measure_all(
    names: Sequence[str],
    seconds: float,
    model: str,
    write: Callable[[Row], object],
    run: Callable[[Sequence[str], Row, float], Row] = row_of_child,
) -> None:
    """Measure rows until the time is up: all on native first, then models on other toolchains.

    Args:
        names: Names of layers and models.
        seconds: Time for all rows.
        model: LLVM's name of the model of GPU.
        write: Function that writes a row.
        run: Function that does a part of the work in another process.
    """
    end = time.monotonic() + seconds

    def measured(arguments: Sequence[str], row: Row) -> Row:
        left = min(ROW_SECONDS, end - time.monotonic())
        return run(arguments, row, left) if left > 0 else row | {"problem": "no time left"}

    cores = max(1, (os.cpu_count() or 1) - 1)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(cores) as pool:

        def compile_ahead(name: str) -> tuple[str, Row]:
            path = str(Path(folder, f"{name}.program"))
            given = ["--compile", name, "--program", path, "--model", model]
            return path, run(given, {"name": name, "part": "native"}, max(1.0, end - time.monotonic()))

        programs: list[Future[tuple[str, Row]]] = [pool.submit(compile_ahead, name) for name in names]
        for name, future in zip(names, programs, strict=True):
            path, row = future.result()
            is_compiled = "problem" not in row
            write(row | measured(["--only", name, "--program", path], row) if is_compiled else row)
    models = [name for name in names if name not in layers()]
    for engine in ENGINES if models else ():
        problem = why_unusable(engine)
        if problem:
            write({"part": engine, "problem": problem})
            continue
        for name in models:
            write(measured(["--only", name, "--engine", engine], {"name": name, "part": engine}))


def run_part(options: argparse.Namespace) -> None:
    """Do the work of a child: compile a program, or measure a part of a row, and print rows."""

    def show(row: Row) -> None:
        print(json.dumps(row), flush=True)

    if options.compile is not None:
        start = time.perf_counter()
        program = compiled(options.compile, options.model)
        options.program.write_bytes(pickle.dumps(program))
        show({"name": options.compile, "part": "native", "compile_seconds": time.perf_counter() - start})
        return
    if options.engine is not None:
        mod = program_of(options.only)
        inputs = inputs_of(compiled(options.only, OLDEST, lambda *_: b""))
        show(engine_row(options.only, mod, inputs, options.engine))
        return
    context = CudaContext.open(CudaDriver.load(options.library))
    try:
        given = options.program
        program = (
            compiled(options.only, model_for(context.capability))
            if given is None
            else pickle.loads(given.read_bytes())
        )
        for row in measure(options.only, context, program):
            show(row)
    finally:
        context.close()


def print_levels(operators: Sequence[str] | None) -> bool:
    """Check the levels of proof of some operators' cases, and print them; return whether one is wrong."""
    is_wrong = False
    for row in check_levels(operators):
        print(json.dumps(row), flush=True)
        is_wrong = is_wrong or "problem" in row
    return is_wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all rows, or do a part of the work in this process; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=540, help="time for all rows")
    parser.add_argument("--output", type=Path, default=Path("gpu.jsonl"), help="file that rows are added to")
    parser.add_argument("--rows", nargs="*", default=None, help="names of models and layers")
    parser.add_argument("--library", default=LIBRARY, help="library of the CUDA driver")
    parser.add_argument("--check", action="store_true", help="compile all rows, without a GPU")
    parser.add_argument("--levels", action="store_true", help="with --check: the levels of proof as well")
    parser.add_argument("--operators", nargs="*", default=None, help="operators whose levels are checked")
    parser.add_argument("--only", help="measure one row here and print it")
    parser.add_argument("--engine", help="with --only: measure it on this toolchain")
    parser.add_argument("--compile", help="compile one row here, to the file of --program")
    parser.add_argument("--program", type=Path, help="file of a compiled row")
    parser.add_argument("--model", default=OLDEST, help="with --compile: LLVM's name of the model of GPU")
    options = parser.parse_args(arguments)
    # Layers first: they take a second each, and say most about the kernels.
    names = [*layers(), *(model.name for model in zoo())] if options.rows is None else options.rows
    try:
        if options.check:
            for name in names:
                print(json.dumps(check(name)), flush=True)
            return int(print_levels(options.operators)) if options.levels else 0
        if options.only is not None or options.compile is not None:
            run_part(options)
            return 0
        context = CudaContext.open(CudaDriver.load(options.library))
        model = model_for(context.capability)
        context.close()
    except MissingToolchainError as error:
        print(error, file=sys.stderr)
        return NO_DEVICE
    except (IntarsiaError, MemoryError) as error:
        print(error, file=sys.stderr)
        return 1

    def write(row: Row) -> None:
        print(json.dumps(row), flush=True)
        with options.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def run(given: Sequence[str], row: Row, seconds: float) -> Row:
        return row_of_child(["--library", options.library, *given], row, seconds)

    measure_all(names, options.seconds, model, write, run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
