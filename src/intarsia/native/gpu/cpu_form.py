"""The LLVM IR of GPU kernels in a form that a CPU runs, one call of a kernel for each thread of the GPU.

Nothing but names changes: the indices of block and thread and the barrier become functions of the process
that runs the kernels, and shared memory becomes visible to it.

    int32_t intarsia_thread_index(void), intarsia_block_index(void)
    void intarsia_barrier(int32_t number)

Each kernel gets an entry `void NAME.entry(void **args)` that loads its arguments, and `int32_t
NAME.facts[2]`: the number of its arguments, and whether it has barriers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from intarsia.native.gpu.emit_kernels import BLOCK_INDEX, THREAD_INDEX, Launch
from intarsia.native.gpu.kernel_statements import BARRIER

_NAMES: Final = {
    THREAD_INDEX: "intarsia_thread_index",
    BLOCK_INDEX: "intarsia_block_index",
    BARRIER: "intarsia_barrier",
}
_SHARED: Final = re.compile(r"internal (addrspace\(3\) global \[\d+ x i8\]) undef")
_ADDRESS_BYTES: Final = 8


def cpu_form(text: str, launches: Iterable[Launch]) -> str:
    """Return a module of kernels with the names of the CPU's process, and an entry for each kernel."""
    text = text.replace("define ptx_kernel void", "define void")
    for name, replacement in _NAMES.items():
        text = text.replace(f"@{name}(", f"@{replacement}(")
    text = _SHARED.sub(r"\1 zeroinitializer", text)
    return text + "\n".join(_entry(launch) for launch in launches) + "\n"


def _entry(launch: Launch) -> str:
    lines, arguments = [], []
    for slot in range(len(launch.arguments)):
        lines.append(f"  %p{slot} = getelementptr i8, ptr %args, i64 {_ADDRESS_BYTES * slot}")
        lines.append(f"  %v{slot} = load ptr addrspace(1), ptr %p{slot}, align {_ADDRESS_BYTES}")
        arguments.append(f"ptr addrspace(1) %v{slot}")
    lines.append(f"  call void @{launch.name}({', '.join(arguments)})")
    body = "\n".join((*lines, "  ret void"))
    facts = f"[i32 {len(launch.arguments)}, i32 {int(launch.has_barriers)}]"
    declared = f"@{launch.name}.facts = constant [2 x i32] {facts}\n"
    return f"{declared}define void @{launch.name}.entry(ptr %args) nounwind {{\nentry:\n{body}\n}}"
