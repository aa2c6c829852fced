"""Native kernels on an NVIDIA GPU: models of the zoo against float64, and layers beside torch's.

Each row is measured in a process of its own, so that a fault loses one row only, and written as soon as it is
there, as one JSON object a line. Times are those of the GPU's events: the median of 20 runs after 3, without
copies. Errors are relative to the norm of the result in float64: of onnxruntime on the CPU for models, of
torch for layers. Without a driver or a GPU it prints that, and ends with exit code 2.
`--check` needs no GPU: it compiles all rows for sm_80, and prints the registers and spills that ptxas finds.
Usage: python -m benchmarks.gpu [--seconds 540] [--output gpu.jsonl] [--rows NAME ...] [--check]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from benchmarks.float64_models import in_float64
from onnx import ModelProto

from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.native.gpu.ptxas import assemble
from intarsia.passes import InferType
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.driver import LIBRARY, CudaDriver
from intarsia.support.errors import IntarsiaError, MissingToolchainError
from intarsia.target import Target
from intarsia.toolchain.native.gpu.compile_program import ImageMaker, compile_program
from intarsia.toolchain.native.gpu.gpu_program import GpuProgram
from intarsia.toolchain.native.gpu.loaded_program import LoadedProgram
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.onnx_compile import onnx_kernel_source

WARM_UPS, RUNS = 3, 20
NO_DEVICE: Final = 2
"""Exit code without a driver or a GPU: that of a usage error."""
TARGET: Final = "cpu -toolchain=native -threads=1"
OPSET: Final = 26
OLDEST: Final = "sm_80"
"""Oldest model of GPU that code is generated for; later ones run it too."""
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """A layer beside torch's.

    Attributes:
        text: Program of the layer.
        rival: Function of torch that computes the same from tensors.
    """

    text: str
    rival: Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """What was measured.

    Attributes:
        name: Name of the model or the layer.
        gpu: Name of the GPU.
        launches: Number of launches of kernels.
        compile_seconds: Time from the program to PTX.
        load_seconds: Time in which the driver makes machine code of it and weights are uploaded.
        microseconds: Median time of a run on the GPU.
        error: Norm of the difference to float64, relative to the norm of the result; None if unknown.
        rival_microseconds: Median time of torch; None if it was not measured.
    """

    name: str
    gpu: str
    launches: int
    compile_seconds: float
    load_seconds: float
    microseconds: float
    error: float | None = None
    rival_microseconds: float | None = None


def layers() -> dict[str, Layer]:
    """Return the layers by name."""

    def product(m: int, n: int, k: int) -> Layer:
        parameters = f"%x: Tensor[({m}, {k}), float32], %y: Tensor[({k}, {n}), float32]"
        return Layer(f"def @main({parameters}) {{ MatMul(%x, %y) }}", lambda x, y: x @ y)

    def convolution(channels: int, size: int) -> Layer:
        x = f"%x: Tensor[(1, {channels}, {size}, {size}), float32]"
        w = f"%w: Tensor[({channels}, {channels}, 3, 3), float32]"
        text = f"def @main({x}, {w}) {{ Relu(Conv(%x, %w, pads=[1, 1, 1, 1])) }}"
        return Layer(text, lambda x, w: _torch().nn.functional.conv2d(x, w, padding=1).relu())

    def rows(count: int, length: int) -> Layer:
        text = f"def @main(%x: Tensor[({count}, {length}), float32]) {{ Softmax(%x, axis=-1) }}"
        return Layer(text, lambda x: x.softmax(-1))

    return {
        **{f"product_{n}": product(n, n, n) for n in (128, 512, 1024, 2048, 4096)},
        "product_16x4096x4096": product(16, 4096, 4096),
        **{f"convolution_{c}_{size}": convolution(c, size) for c, size in ((64, 56), (128, 28), (256, 14))},
        **{f"softmax_{n}x{k}": rows(n, k) for n, k in ((4096, 128), (1024, 4096), (16, 32000))},
    }


def measure(
    name: str, context: CudaContext, model: str, make_image: ImageMaker | None = None, runs: int = RUNS
) -> Row:
    """Measure one model or layer on a GPU.

    Args:
        name: Name of the model or layer.
        context: The GPU.
        model: LLVM's name of its model.
        make_image: Function that makes its code; PTX if not given.
        runs: Number of timed runs.
    """
    layer = layers().get(name)
    onnx_model = build_model(name) if layer is None else None
    mod = InferType()(parse_module(layer.text)) if layer is not None else _imported(onnx_model)
    start = time.perf_counter()
    program = _compiled(mod, model, make_image)
    compiled = time.perf_counter()
    loaded = LoadedProgram(context, program)
    ready = time.perf_counter()
    inputs = _inputs(program)
    results = loaded.run(inputs)
    for _ in range(WARM_UPS):
        loaded.launch()
    seconds = median(context.time(loaded.launch) for _ in range(runs))
    loaded.close()
    exact = None if onnx_model is None else _in_float64(onnx_model, program, inputs)
    rival = None
    if layer is not None:
        exact, rival = _beside(layer, inputs, runs)
    return Row(
        *(name, context.name, len(program.launches), compiled - start, ready - compiled, seconds * 1e6),
        error=None if exact is None else _error(results, exact),
        rival_microseconds=rival,
    )


def check(name: str) -> dict[str, Any]:
    """Compile one model or layer for the oldest GPU; return what ptxas says about its kernels."""
    layer = layers().get(name)
    mod = _imported(build_model(name)) if layer is None else InferType()(parse_module(layer.text))
    program = _compiled(mod, OLDEST, None)
    kernels = assemble(program.image.rstrip(b"\0").decode(), OLDEST).kernels
    return {
        "name": name,
        "launches": len(program.launches),
        "kernels": len(kernels),
        "most_registers": max(kernel.registers for kernel in kernels),
        "kernels_that_spill": sum(kernel.spilled_bytes > 0 for kernel in kernels),
    }


def _imported(model: ModelProto | None) -> IRModule:
    assert model is not None, "a layer has a program"
    return from_onnx(model)


def _compiled(mod: IRModule, model: str, make_image: ImageMaker | None) -> GpuProgram:
    source = onnx_kernel_source(Native(), mod["main"], Target(TARGET), mod, OPSET)
    return compile_program(source, model, make_image)


def _inputs(program: GpuProgram) -> list[Array]:
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal(port.shape).astype(port.dtype)
        if port.dtype.kind == "f"
        else rng.integers(0, 100, port.shape).astype(port.dtype)
        for port in program.params
    ]


def _in_float64(model: ModelProto, program: GpuProgram, inputs: Sequence[Array]) -> list[Array] | None:
    """Return the results in float64; None without onnxruntime, or if it lacks a kernel."""
    try:
        import onnxruntime
    except ImportError:
        return None
    widened = [array.astype(np.float64) if array.dtype == np.float32 else array for array in inputs]
    given = {port.name: array for port, array in zip(program.params, widened, strict=True)}
    try:
        session = onnxruntime.InferenceSession(in_float64(model).SerializeToString())
        return list(session.run(None, given))
    except Exception:  # its errors have no common type but this
        return None


def _error(results: Sequence[Array], exact: Sequence[Array]) -> float:
    """Return the greatest relative error of a result by norm."""
    errors = []
    for result, reference in zip(results, exact, strict=True):
        difference = np.linalg.norm(result.astype(np.float64).ravel() - reference.ravel())
        errors.append(float(difference / max(float(np.linalg.norm(reference.ravel())), 1e-30)))
    return max(errors)


def _torch() -> Any:
    import torch

    return torch


def _beside(layer: Layer, inputs: Sequence[Array], runs: int) -> tuple[list[Array] | None, float | None]:
    """Return the layer's result in float64 and torch's time in microseconds, where torch has a GPU."""
    try:
        torch = _torch()
    except ImportError:
        return None, None
    exact = layer.rival(*(torch.from_numpy(array).double() for array in inputs)).numpy()
    if not torch.cuda.is_available():
        return [exact], None
    tensors = [torch.from_numpy(array).cuda() for array in inputs]
    times = []
    for run in range(WARM_UPS + runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        layer.rival(*tensors)
        end.record()
        end.synchronize()
        if run >= WARM_UPS:
            times.append(start.elapsed_time(end) * 1e3)
    return [exact], median(times)


def model_for(capability: tuple[int, int]) -> str:
    """Return the model that code for a GPU is generated for: its own for 9.0, else the oldest."""
    return "sm_90a" if capability == (9, 0) else OLDEST


def measure_in_child(name: str, seconds: float) -> dict[str, Any]:
    """Measure a row in a process of its own; return the row, or what went wrong."""
    command = [sys.executable, "-m", "benchmarks.gpu", "--only", name]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"name": name, "problem": f"not done after {seconds:.0f} s"}
    lines = child.stdout.strip().splitlines()
    if child.returncode or not lines:
        return {"name": name, "problem": child.stderr.strip()[-500:] or f"exit code {child.returncode}"}
    row: dict[str, Any] = json.loads(lines[-1])
    return row


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all rows, or one of them in this process; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=540, help="time for all rows")
    parser.add_argument("--output", type=Path, default=Path("gpu.jsonl"), help="file that rows are added to")
    parser.add_argument("--rows", nargs="*", default=None, help="names of models and layers")
    parser.add_argument("--library", default=LIBRARY, help="library of the CUDA driver")
    parser.add_argument("--check", action="store_true", help="compile all rows, without a GPU")
    parser.add_argument("--only", help="measure one row here and print it")
    options = parser.parse_args(arguments)
    # Layers first: they take a second each, and say most about the kernels.
    names = options.rows or [*layers(), *(model.name for model in zoo())]
    if options.check:
        for name in names:
            print(json.dumps(check(name)), flush=True)
        return 0
    try:
        context = CudaContext.open(CudaDriver.load(options.library))
    except MissingToolchainError as error:
        print(error, file=sys.stderr)
        return NO_DEVICE
    try:
        if options.only is not None:
            print(json.dumps(asdict(measure(options.only, context, model_for(context.capability)))))
            return 0
    except (IntarsiaError, MemoryError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        context.close()
    end = time.monotonic() + options.seconds
    for name in names:
        left = end - time.monotonic()
        row = measure_in_child(name, left) if left > 0 else {"name": name, "problem": "no time left"}
        print(json.dumps(row), flush=True)
        with options.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
