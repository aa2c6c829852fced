"""Compiles and runs the CPU form of GPU kernels; needs gcc."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import PrimFunc
from intarsia.native.gpu.cpu_form import cpu_form
from intarsia.native.gpu.emit_kernels import EmittedKernels, Launch, emit_kernels
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import generate_object_code

Array = npt.NDArray[Any]
FAULTS = {
    1: "some threads wait at a barrier, or for a warp, that others never reach",
    2: "a block has too many threads",
    3: "a thread ends while its copies are under way",
    4: "an address is no multiple of the size that a copy or a matrix needs",
}
"""What run_grid returns."""
GRID_SOURCE = Path(__file__).with_name("grid.c")


@dataclass
class Folder:
    """A folder of this process for compiled code, removed at its end."""

    held: tempfile.TemporaryDirectory[str]
    count: int = 0

    def fresh(self, suffix: str) -> Path:
        self.count += 1
        return Path(self.held.name, f"code{self.count}{suffix}")


@functools.cache
def folder() -> Folder:
    return Folder(tempfile.TemporaryDirectory(prefix="intarsia-gpu-on-cpu"))


def compile_c(source: Path, *options: str) -> Path:
    """Compile a C file to a shared library."""
    library = folder().fresh(".so")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library), *options], check=True)
    return library


@functools.cache
def grid_path() -> Path:
    """The library that runs grids."""
    return compile_c(GRID_SOURCE)


@functools.cache
def grid_library() -> ctypes.CDLL:
    """The runner of grids, whose symbols kernels find."""
    return ctypes.CDLL(str(grid_path()), mode=ctypes.RTLD_GLOBAL)


def kernel_library(text: str, launches: Sequence[Launch]) -> Path:
    """Compile the CPU form of kernels to a shared library; the last ones are kept."""
    return _kernel_library(text, tuple(launches))


@functools.lru_cache(16)
def _kernel_library(text: str, launches: tuple[Launch, ...]) -> Path:
    object_file, library = folder().fresh(".o"), folder().fresh(".so")
    object_file.write_bytes(generate_object_code(cpu_form(text, launches), Isa.host()))
    subprocess.run(["gcc", "-shared", str(object_file), "-o", str(library)], check=True)
    return library


def run_emitted(emitted: EmittedKernels, arrays: Mapping[str, Array], *, is_descending: bool) -> None:
    """Run kernels on arrays by buffer name, in place."""
    grid = grid_library()
    code = ctypes.CDLL(str(kernel_library(emitted.text, emitted.launches)))
    workspace = {b.name: np.full(b.shape, 127, b.dtype.numpy) for b in emitted.workspace}
    memory = {**arrays, **workspace}
    for launch in emitted.launches:
        addresses = (ctypes.c_void_p * max(1, len(launch.arguments)))(
            *(memory[name].ctypes.data for name in launch.arguments)
        )
        shared = None
        if launch.shared_bytes:
            shared = ctypes.addressof(ctypes.c_char.in_dll(code, f"{launch.name}.shared"))
        entry = ctypes.cast(getattr(code, f"{launch.name}.entry"), ctypes.c_void_p)
        failed = grid.run_grid(
            *(entry, addresses, launch.blocks, launch.threads, ctypes.c_void_p(shared)),
            *(ctypes.c_size_t(launch.shared_bytes), int(launch.has_barriers), int(is_descending)),
        )
        assert not failed, FAULTS[failed]


def run_on_cpu(function: PrimFunc, arrays: Mapping[str, Array], *, is_descending: bool = False) -> None:
    """Run a loop function of kernels on arrays by parameter name, in place."""
    run_emitted(emit_kernels(function, "k", "sm_80"), arrays, is_descending=is_descending)
