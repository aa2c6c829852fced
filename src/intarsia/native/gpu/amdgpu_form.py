"""The LLVM IR of GPU kernels for GPUs of AMD: the same kernels, without what NVIDIA's GPUs alone have.

Kernels come from `gpu_kernels(dag, is_portable=True)`: no products of warps, no asynchronous copies. What
changes are names: the calling convention, the indices of block and thread, the barrier with the fences that
LLVM needs, and the memory of a thread, which has an address space of its own. Nothing here has run on a
GPU of AMD, and the runtime loads no such code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from intarsia.native.gpu.emit_kernels import BLOCK_INDEX, THREAD_INDEX, Launch
from intarsia.native.gpu.kernel_statements import BARRIER
from intarsia.native.gpu.plain_dots import with_plain_dots
from intarsia.support.errors import CompileError

AMD_MODELS: Final = ("gfx90a", "gfx1100")
"""Models that code is checked for: Instinct MI200, and Radeon RX 7000."""
_LOCAL_BYTES: Final = 64 * 1024
"""Size of the memory that the threads of a block share, on every model."""
_NAMES: Final = {
    THREAD_INDEX: "llvm.amdgcn.workitem.id.x",
    BLOCK_INDEX: "llvm.amdgcn.workgroup.id.x",
    BARRIER: "llvm.amdgcn.s.barrier",
}
_WAIT: Final = re.compile(rf"^( *)call void @{re.escape(BARRIER)}\(i32 0\)$", re.MULTILINE)
_STACK: Final = re.compile(r"^( *)(%\S+) = alloca (.*)$", re.MULTILINE)
_PRIVATE: Final = 5
"""Number of the address space of a thread's memory."""


def amdgpu_form(text: str, launches: Sequence[Launch]) -> str:
    """Return a module of kernels for GPUs of AMD.

    Args:
        text: Module for NVIDIA's GPUs, without target triple and data layout.
        launches: Its kernels.

    Raises:
        CompileError: A kernel needs what these GPUs have not.
    """
    for launch in launches:
        if launch.shared_bytes > _LOCAL_BYTES:
            raise CompileError(
                f"a kernel has {launch.shared_bytes} bytes of shared memory; expected at most {_LOCAL_BYTES} "
                "on GPUs of AMD"
            )
    text = text.replace("define ptx_kernel void", "define amdgpu_kernel void")
    text = re.sub(r'"nvvm\.maxntid"="(\d+)"', r'"amdgpu-flat-work-group-size"="1,\1"', text)
    text = _WAIT.sub(
        r'\1fence syncscope("workgroup") release\n\1call void @llvm.amdgcn.s.barrier()\n'
        r'\1fence syncscope("workgroup") acquire',
        text,
    ).replace(f"@{BARRIER}(i32)", f"@{BARRIER}()")
    for name, replacement in _NAMES.items():
        text = text.replace(f"@{name}(", f"@{replacement}(")
    text = _STACK.sub(
        rf"\1\2.private = alloca \3, addrspace({_PRIVATE})\n"
        rf"\1\2 = addrspacecast ptr addrspace({_PRIVATE}) \2.private to ptr",
        text,
    )
    text = with_plain_dots(text)
    left = re.search(r"@(llvm\.nvvm\.[\w.]*)", text)
    if left is not None:
        raise CompileError(
            f"GPUs of AMD have no {left[1]}", help="lower with gpu_kernels(dag, is_portable=True)"
        )
    return text
