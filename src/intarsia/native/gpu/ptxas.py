"""ptxas, NVIDIA's assembler: it checks PTX without a GPU, and counts registers and spills.

It is not part of this package. The one on PATH comes first, then that of the wheel `nvidia-cuda-nvcc`
(`pip install 'intarsia[ptxas]'`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from intarsia.support.environment import copy_environment
from intarsia.support.errors import CompileError, MissingToolchainError

_SECONDS: Final = 600
_ENTRY: Final = re.compile(r"Compiling entry function '(\S+)'")
_SPILLS: Final = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS: Final = re.compile(r"Used (\d+) registers")


@dataclass(frozen=True)
class KernelResources:
    """Resources of a kernel after register allocation.

    Attributes:
        name: Symbol of the kernel.
        registers: Number of 32-bit registers of a thread.
        stack_bytes: Size of a thread's stack frame in bytes.
        spilled_bytes: Number of bytes that a thread stores and loads because registers are missing.
    """

    name: str
    registers: int
    stack_bytes: int
    spilled_bytes: int


@dataclass(frozen=True)
class AssembledKernels:
    """A module for one model of GPU.

    Attributes:
        cubin: Machine code.
        kernels: Resources of its kernels, in the order of ptxas.
    """

    cubin: bytes
    kernels: tuple[KernelResources, ...]


def find_ptxas() -> Path | None:
    """Return the path of ptxas: on PATH, else in the wheel; None if there is none."""
    on_path = shutil.which("ptxas")
    if on_path is not None:
        return Path(on_path)
    nvidia = find_spec("nvidia")
    roots = list(nvidia.submodule_search_locations or ()) if nvidia is not None else []
    inside = (path for root in roots for path in sorted(Path(root).glob("*/bin/ptxas")))
    return next(inside, None)


def assemble(ptx: str, model: str) -> AssembledKernels:
    """Assemble PTX for a model.

    Raises:
        MissingToolchainError: There is no ptxas.
        CompileError: It refuses the text; its message is included.
    """
    program = find_ptxas()
    if program is None:
        raise MissingToolchainError("there is no ptxas", help="pip install 'intarsia[ptxas]'")
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        source.write_text(ptx)
        command = [str(program), "-v", f"-arch={model}", str(source), "-o", str(binary)]
        child = subprocess.run(  # noqa: S603  # the program that find_ptxas found
            command,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env=copy_environment(),
        )
        if child.returncode:
            raise CompileError(f"ptxas refuses the code for {model}: {child.stderr.strip()[:2000]}")
        return AssembledKernels(binary.read_bytes(), _resources(child.stdout + child.stderr))


def _resources(log: str) -> tuple[KernelResources, ...]:
    kernels = []
    for part in log.split("Compiling entry function")[1:]:
        name = _ENTRY.search("Compiling entry function" + part)
        spills, registers = _SPILLS.search(part), _REGISTERS.search(part)
        if name is not None and spills is not None and registers is not None:
            stack, stores, loads = (int(number) for number in spills.groups())
            kernels.append(KernelResources(name[1], int(registers[1]), stack, stores + loads))
    return tuple(kernels)
