"""PTX from LLVM IR, in a child process: LLVM ends the process where it cannot select an instruction.

`python -m intarsia.native.gpu.generate_ptx sm_80` reads LLVM IR from its input and writes PTX to its output;
with a model of AMD, such as gfx90a, it writes assembly.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Final

from intarsia.native.machine.compiler_library import compiler_library
from intarsia.support.environment import copy_environment
from intarsia.support.errors import CompileError

MODELS: Final = ("sm_80", "sm_90a", "sm_120")
"""Models that code is checked for.

PTX for sm_80 runs on all later models, PTX for sm_90a on compute capability 9.0 only.
"""
_TRIPLES: Final = {"sm_": "nvptx64-nvidia-cuda", "gfx": "amdgcn-amd-amdhsa"}
"""LLVM's name of the target, by the begin of a model's name."""
_SECONDS: Final = 300
"""Time limit of a child process in seconds; kernels take less than one."""
_CODEGEN_LEVEL: Final = 3
_MOST_LINES: Final = 8


def generate_ptx(text: str, model: str) -> str:
    """Generate PTX for a module of LLVM IR.

    Args:
        text: Module without target triple and data layout.
        model: LLVM's name of the GPU's model, such as "sm_80".

    Raises:
        CompileError: LLVM refuses the module, or its process ends.
    """
    return _generated(text, model, "PTX")


def generate_amdgpu(text: str, model: str) -> str:
    """Generate assembly of a GPU of AMD for a module of LLVM IR, and machine code, which is not kept.

    Args:
        text: Module of `amdgpu_form`.
        model: LLVM's name of the GPU's model, such as "gfx90a".

    Raises:
        CompileError: LLVM refuses the module, or its process ends.
    """
    return _generated(text, model, "assembly")


def _generated(text: str, model: str, kind: str) -> str:
    command = [sys.executable, "-m", __name__, model]
    try:
        child = subprocess.run(  # noqa: S603  # this interpreter, on a module of this package
            command,
            input=text.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env=copy_environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise CompileError(f"LLVM generated no {kind} for {model} within {_SECONDS} s") from error
    if child.returncode:
        lines = child.stderr.decode(errors="replace").strip().splitlines()[-_MOST_LINES:]
        raise CompileError(f"LLVM cannot generate {kind} for {model}: " + ("; ".join(lines) or "it crashed"))
    return child.stdout.decode()


def _generate_here(text: str, model: str) -> str:
    """Generate the text in this process, which LLVM may end."""
    library = compiler_library()
    library.initialize_all_targets()
    library.initialize_all_asmprinters()
    triple = next(triple for begin, triple in _TRIPLES.items() if model.startswith(begin))
    machine = library.Target.from_triple(triple).create_target_machine(cpu=model, opt=_CODEGEN_LEVEL)

    def module() -> Any:
        parsed = library.parse_assembly(text, library.create_context())
        parsed.verify()
        parsed.triple, parsed.data_layout = triple, str(machine.target_data)
        return parsed

    if not triple.startswith("nvptx"):
        # The assembler is in LLVM: what it refuses is no code. Generating code changes a module.
        machine.emit_object(module())
    return str(machine.emit_assembly(module()))


if __name__ == "__main__":
    sys.stdout.write(_generate_here(sys.stdin.read(), sys.argv[1]))
