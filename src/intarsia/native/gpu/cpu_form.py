"""The LLVM IR of GPU kernels in a form that a CPU runs, one call of a kernel for each thread of the GPU.

Little but names changes: the indices of block and thread, the barrier and asynchronous copies become
functions of the process that runs the kernels, and shared memory becomes visible to it.

    int32_t intarsia_thread_index(void), intarsia_block_index(void)
    void intarsia_barrier(int32_t number)
    void intarsia_copy_SIZE(void *to, void *from)
    void intarsia_copy_SIZE_ragged(void *to, void *from, int32_t read_bytes)
    void intarsia_copy_commit(void), intarsia_copy_wait(int32_t pending)

    void intarsia_matrices(int32_t *words, void *row, int32_t count, int32_t is_transposed)
    void intarsia_product(float *sums, int32_t *words, int32_t kind)
    int32_t intarsia_as_tf32(float number)

SIZE is 4, 8 or 16 bytes; a copy is done when its thread waits for it. What a warp does together it does
when all its threads have called it: `intarsia_matrices` is `ldmatrix` with `count` words for each thread,
and `intarsia_product` adds the product of both fragments, 4 words and 2 words, to 4 sums; `kind` is 0 for
bfloat16, 1 for float16, 2 for tf32, 3 for unsigned by signed bytes, and 4 for signed by unsigned ones, whose
sums are int32. Intrinsics that return structures call them through functions of the module.

Each kernel gets an entry `void NAME.entry(void **args)` that loads its arguments, and `int32_t
NAME.facts[3]`: the number of its arguments, whether it has barriers, and the size in bytes of the shared
memory that its launch has to ask for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from intarsia.native.gpu.emit_kernels import BLOCK_INDEX, THREAD_INDEX, Launch, shared_name
from intarsia.native.gpu.kernel_statements import BARRIER, COPY
from intarsia.native.gpu.plain_dots import with_plain_dots
from intarsia.native.gpu.warp_products import AS_TF32, BYTES, MATRICES, MMA, SIGNED_BYTES

_NAMES: Final = {
    THREAD_INDEX: "intarsia_thread_index",
    BLOCK_INDEX: "intarsia_block_index",
    BARRIER: "intarsia_barrier",
    f"{COPY}.commit.group": "intarsia_copy_commit",
    f"{COPY}.wait.group": "intarsia_copy_wait",
}
_SHARED: Final = re.compile(r"internal (addrspace\(3\) global \[\d+ x i8\]) undef")
_COPY: Final = re.compile(rf"@{re.escape(COPY)}\.c[ag]\.shared\.global\.(\d+)(\.s)?\(")
_WARP: Final = re.compile(rf"@((?:{re.escape(MATRICES)}|{re.escape(MMA)})[.\w]*)\(")
_WARP_DECLARATIONS: Final = """declare void @intarsia_matrices(ptr, ptr addrspace(3), i32, i32)
declare void @intarsia_product(ptr, ptr, i32)
"""
_ADDRESS_BYTES: Final = 8
_KINDS: Final = ("bf16", "f32.f32", "tf32", "u8.s8", "s8.u8")
"""Ends of the names of products, in the order of their numbers."""


def cpu_form(text: str, launches: Sequence[Launch]) -> str:
    """Return a module of kernels with the names of the CPU's process, and an entry for each kernel."""
    text = text.replace("define ptx_kernel void", "define void")
    for name, replacement in _NAMES.items():
        text = text.replace(f"@{name}(", f"@{replacement}(")
    text = _COPY.sub(lambda copy: f"@intarsia_copy_{copy[1]}{'_ragged' if copy[2] else ''}(", text)
    text = _SHARED.sub(r"\1 zeroinitializer", text)
    for launch in launches:
        if launch.dynamic_bytes:
            text = _with_shared_memory(text, launch)
    text = with_plain_dots(_with_warp_functions(text))
    return text + "\n".join(_entry(launch) for launch in launches) + "\n"


def _with_shared_memory(text: str, launch: Launch) -> str:
    """Return a module in which the shared memory that a launch adds has its size, and the usual name."""
    symbol = f"@{shared_name(launch.name, launch.shared_bytes)}"
    memory = f"addrspace(3) global [{launch.dynamic_bytes} x i8] zeroinitializer"
    text = text.replace(f"{symbol} = external addrspace(3) global [0 x i8]", f"{symbol} = {memory}")
    return re.sub(rf"{symbol}\b", f"@{launch.name}.shared", text)


def _with_warp_functions(text: str) -> str:
    """Return a module in which functions of its own stand for the intrinsics of a warp."""
    text = text.replace(f"@{AS_TF32}(", "@intarsia_as_tf32(")
    called = sorted(set(_WARP.findall(text)))
    if not called:
        return text
    declared = re.compile(rf"^declare .*@(?:{'|'.join(map(re.escape, called))})\(.*\n", re.MULTILINE)
    text = declared.sub("", text)
    functions = [_product(name) if name.startswith(MMA) else _matrices(name) for name in called]
    for name in called:
        text = text.replace(f"@{name}(", f"@{_own_name(name)}(")
    return text + _WARP_DECLARATIONS + "\n".join(functions) + "\n"


def _own_name(name: str) -> str:
    return name.replace("llvm.nvvm", "intarsia")


def _matrices(name: str) -> str:
    """Return a function in place of an intrinsic that loads matrices."""
    count = 4 if ".x4" in name else 2
    kind = f"{{ {', '.join(['i32'] * count)} }}"
    return (
        f"define internal {kind} @{_own_name(name)}(ptr addrspace(3) %row) {{\n"
        f"  %words = alloca {kind}\n"
        f"  call void @intarsia_matrices(ptr %words, ptr addrspace(3) %row, i32 {count}, "
        f"i32 {int('.trans' in name)})\n"
        f"  %result = load {kind}, ptr %words\n  ret {kind} %result\n}}"
    )


def _product(name: str) -> str:
    """Return a function in place of an intrinsic that multiplies."""
    word = "<2 x half>" if name.endswith(".f32.f32") else "i32"
    kind = next(number for number, end in enumerate(_KINDS) if name.endswith(f".{end}"))
    total = "i32" if name in (BYTES, SIGNED_BYTES) else "float"
    sums = f"{{ {', '.join([total] * 4)} }}"
    given = ", ".join((*(f"{word} %w{n}" for n in range(6)), *(f"{total} %s{n}" for n in range(4))))
    stored = [
        f"  %{letter}p{n} = getelementptr i8, ptr %{array}, i64 {4 * n}\n"
        f"  store {type_} %{letter}{n}, ptr %{letter}p{n}"
        for letter, array, type_, count in (("w", "words", word, 6), ("s", "sums", total, 4))
        for n in range(count)
    ]
    return "\n".join(
        (
            f"define internal {sums} @{_own_name(name)}({given}) {{",
            "  %words = alloca [6 x i32]\n  %sums = alloca [4 x i32]",
            *stored,
            f"  call void @intarsia_product(ptr %sums, ptr %words, i32 {kind})",
            f"  %result = load {sums}, ptr %sums\n  ret {sums} %result\n}}",
        )
    )


def _entry(launch: Launch) -> str:
    lines, arguments = [], []
    for slot in range(len(launch.arguments)):
        lines.append(f"  %p{slot} = getelementptr i8, ptr %args, i64 {_ADDRESS_BYTES * slot}")
        lines.append(f"  %v{slot} = load ptr addrspace(1), ptr %p{slot}, align {_ADDRESS_BYTES}")
        arguments.append(f"ptr addrspace(1) %v{slot}")
    lines.append(f"  call void @{launch.name}({', '.join(arguments)})")
    body = "\n".join((*lines, "  ret void"))
    numbers = (len(launch.arguments), int(launch.has_barriers), launch.dynamic_bytes)
    facts = f"[{', '.join(f'i32 {number}' for number in numbers)}]"
    declared = f"@{launch.name}.facts = constant [3 x i32] {facts}\n"
    return f"{declared}define void @{launch.name}.entry(ptr %args) nounwind {{\nentry:\n{body}\n}}"
