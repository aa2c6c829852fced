"""What ptxas counts for kernels: few registers, and nothing spilled."""

from __future__ import annotations

import pytest

from intarsia.native.gpu.generate_ptx import generate_ptx
from intarsia.native.gpu.ptxas import KernelResources, assemble, find_ptxas

needs_ptxas = pytest.mark.skipif(
    find_ptxas() is None, reason="there is no ptxas: pip install 'intarsia[ptxas]'"
)


def assert_resources(ptx: str, model: str, most_registers: int) -> tuple[KernelResources, ...]:
    """Fail unless all kernels of PTX have few registers and spill none; return what ptxas counts."""
    kernels = assemble(ptx, model).kernels
    assert kernels
    for kernel in kernels:
        assert kernel.spilled_bytes == 0, kernel
        assert kernel.registers <= most_registers, kernel
    return kernels


def assert_text_resources(text: str, model: str, most_registers: int) -> tuple[KernelResources, ...]:
    """Fail unless all kernels of an LLVM module have few registers and spill none, as `assert_resources`."""
    return assert_resources(generate_ptx(text, model), model, most_registers)
