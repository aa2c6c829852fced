"""Rows of `benchmarks.gpu`, measured in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from benchmarks.gpu_layers import Layer, layers
from benchmarks.gpu_references import relative_error, results_in_float64
from benchmarks.gpu_timing import WARM_UPS, Batch, NativeRuns, interleaved, torch_batch

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.native.gpu.ptxas import assemble
from intarsia.passes import InferType
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.resident_program import ResidentProgram
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target
from intarsia.toolchain.native.gpu.compile_program import ImageMaker, compile_program
from intarsia.toolchain.native.gpu.gpu_kernel import OLDEST
from intarsia.toolchain.native.gpu.gpu_program import GpuProgram
from intarsia.toolchain.native.gpu.loaded_program import LoadedProgram
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.onnx_compile import onnx_kernel_source
from intarsia.toolchain.registered import toolchain_for

RUNS: Final = 20
TARGET: Final = "cpu -toolchain=native -threads=1"
OPSET: Final = 26
Array = npt.NDArray[Any]
Row = dict[str, Any]


def program_of(name: str) -> IRModule:
    """Return the program of a layer or of a model."""
    layer = layers().get(name)
    return from_onnx(build_model(name)) if layer is None else InferType()(parse_module(layer.text))


def compiled(name: str, model: str, make_image: ImageMaker | None = None) -> GpuProgram:
    """Compile a layer or a model.

    Args:
        name: Its name.
        model: LLVM's name of the model of GPU.
        make_image: Function that makes its code; PTX if not given.
    """
    mod = program_of(name)
    source = onnx_kernel_source(Native(), mod["main"], Target(TARGET), mod, OPSET)
    return compile_program(source, model, make_image)


def measure(name: str, context: CudaContext, program: GpuProgram, runs: int = RUNS) -> Iterator[Row]:
    """Measure one model or layer on a GPU; yield its row, with more in it each time.

    Args:
        name: Name of the model or layer.
        context: The GPU.
        program: Its program.
        runs: Number of timed batches.
    """
    start = time.perf_counter()
    loaded = LoadedProgram(context, program)
    row: Row = {"name": name, "part": "native", "gpu": context.name, "launches": len(program.launches)}
    row["load_seconds"] = time.perf_counter() - start
    inputs = inputs_of(program)
    results = loaded.run(inputs)
    batch = NativeRuns.of(context, loaded, inputs).batch()
    row["microseconds"] = interleaved([batch], runs)[0] * 1e6
    yield row
    row["error"] = error_of(name, program, inputs, results)
    yield row
    layer = layers().get(name)
    if layer is not None:
        yield row | beside_torch(layer, inputs, batch, context.cache_bytes, runs)
    loaded.close()


def beside_torch(layer: Layer, inputs: Sequence[Array], batch: Batch, cache_bytes: int, runs: int) -> Row:
    """Return the times of a layer and of torch's, measured by turns, or why there is none of torch's.

    Args:
        layer: The layer.
        inputs: Its inputs.
        batch: Runs of native.
        cache_bytes: Size of the second-level cache of the GPU.
        runs: Number of timed batches.
    """
    try:
        import torch

        rival = torch_batch(torch, layer.rival, inputs, cache_bytes)
    except (ImportError, RuntimeError, AssertionError) as error:  # of torch: no GPU, or too little memory
        return {"rival": str(error).splitlines()[0]}
    ours, theirs = interleaved([batch, rival], runs)
    return {"microseconds": ours * 1e6, "rival_microseconds": theirs * 1e6}


def error_of(
    name: str, program: GpuProgram, inputs: Sequence[Array], results: Sequence[Array]
) -> float | str:
    """Return the error of results relative to those in float64, or why these are not known."""
    layer = layers().get(name)
    if layer is not None:
        return relative_error(results, [layer.exact(*(array.astype(np.float64) for array in inputs))])
    given = {port.name: array for port, array in zip(program.params, inputs, strict=True)}
    try:
        return relative_error(results, results_in_float64(build_model(name), given))
    except IntarsiaError as error:
        return error.problem


def engine_row(name: str, mod: IRModule, inputs: Sequence[Array], engine: str, runs: int = RUNS) -> Row:
    """Measure a program on another toolchain for GPUs; return the row.

    Args:
        name: Name of the program.
        mod: The program.
        inputs: Its inputs, which stay on the GPU.
        engine: Name of the toolchain, with options of its target.
        runs: Number of timed runs.

    Raises:
        IntarsiaError: The toolchain is not usable here, or cannot run the program.
        MemoryError: The GPU has not as much memory.
    """
    target = Target(f"cuda -toolchain={engine}")
    toolchain_for(target)
    with build(mod, target) as executable:
        call = ResidentProgram(executable, inputs)
        for _ in range(WARM_UPS):
            call()
        (seconds,) = interleaved([lambda: call.clock.seconds(call)], runs)
    return {"name": name, "part": engine, "microseconds": seconds * 1e6}


def why_unusable(engine: str) -> str:
    """Return why a toolchain is not usable on this machine's GPU; "" if it is."""
    try:
        toolchain_for(Target(f"cuda -toolchain={engine}"))
    except IntarsiaError as error:
        return str(error)
    return ""


def check(name: str) -> Row:
    """Compile one model or layer for the oldest GPU; return what ptxas says about its kernels."""
    program = compiled(name, OLDEST)
    kernels = assemble(program.image.rstrip(b"\0").decode(), OLDEST).kernels
    return {
        "name": name,
        "launches": len(program.launches),
        "kernels": len(kernels),
        "most_registers": max(kernel.registers for kernel in kernels),
        "kernels_that_spill": sum(kernel.spilled_bytes > 0 for kernel in kernels),
    }


def inputs_of(program: GpuProgram) -> list[Array]:
    """Return random inputs: standard normal floats, and integers below 100."""
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal(port.shape).astype(port.dtype)
        if port.dtype.kind == "f"
        else rng.integers(0, 100, port.shape).astype(port.dtype)
        for port in program.params
    ]
