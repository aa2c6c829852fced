"""Emission of the kernels of a loop function as one LLVM module for NVPTX.

A kernel is `ptx_kernel void @name(ptr addrspace(1) ..)`, with a pointer for each of its buffers in global
memory. Pointers are cast to the generic address space at once, so that the emitter of CPU code writes the
rest; LLVM infers the address spaces again. A block's shared memory is one array, in which buffers have
offsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.ir.prim_func import Buffer, PrimFunc
from intarsia.native.emission.builder import ModuleText
from intarsia.native.emission.facts import Facts
from intarsia.native.emission.parallel import new_function
from intarsia.native.emission.scalar import Scalars
from intarsia.native.emission.state import FunctionState, KernelState, MemoryPlace
from intarsia.native.emission.types import stored_bytes
from intarsia.native.gpu.kernel_list import DECLARED_SHARED_BYTES, SHARED_ALIGNMENT, Kernel, list_kernels
from intarsia.native.gpu.kernel_statements import BARRIER, KernelStatements
from intarsia.native.gpu.warp_products import MATRICES, MMA, THREAD_NUMBER
from intarsia.native.machine.isa import Isa
from intarsia.support.errors import CompileError

THREAD_INDEX: Final = "llvm.nvvm.read.ptx.sreg.tid.x"
BLOCK_INDEX: Final = "llvm.nvvm.read.ptx.sreg.ctaid.x"
_ALIGNMENT: Final = 16
"""Alignment that buffers in global memory have, in bytes: allocations and offsets in an arena have more."""


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel.

    Attributes:
        name: Symbol of the kernel.
        blocks: Number of blocks.
        threads: Number of threads of a block.
        arguments: Names of the buffers whose addresses are its arguments, in order.
        shared_bytes: Size of a block's shared memory in bytes.
        has_barriers: Whether threads wait for each other.
        is_counted: Whether the number of blocks is known when it is launched; `blocks` is the maximum then.
    """

    name: str
    blocks: int
    threads: int
    arguments: tuple[str, ...]
    shared_bytes: int
    has_barriers: bool
    is_counted: bool = False

    @property
    def dynamic_bytes(self) -> int:
        """Size of the shared memory that the kernel does not declare, and its launch adds."""
        return self.shared_bytes if self.shared_bytes > DECLARED_SHARED_BYTES else 0


@dataclass(frozen=True)
class EmittedKernels:
    """The kernels of a loop function as LLVM IR.

    Attributes:
        text: LLVM module, without target triple and data layout.
        launches: Launches in order.
        workspace: Buffers in global memory that are neither inputs nor outputs.
    """

    text: str
    launches: tuple[Launch, ...]
    workspace: tuple[Buffer, ...]


def emit_kernels(
    function: PrimFunc, stem: str, model: str, module: ModuleText | None = None
) -> EmittedKernels:
    """Emit a verified loop function whose statements are all kernels.

    Args:
        function: Loop function; the attribute `contract` allows products and sums to be fused.
        stem: Beginning of the names of its kernels, an identifier.
        model: LLVM's name of the GPU's model, such as "sm_80".
        module: Module that the kernels are added to; a new one if not given.

    Raises:
        CompileError: A statement stands outside of the kernels, a kernel is too large for a GPU, or a
            mathematical function has no code for GPUs.
    """
    listed = list_kernels(function)
    module = ModuleText() if module is None else module
    isa = Isa("nvptx64", model, ())
    launches = [
        _emit(function, kernel, f"{stem}_{number}", isa, module)
        for number, kernel in enumerate(listed.kernels)
    ]
    if module.symbols:
        names = ", ".join(sorted(module.symbols))
        raise CompileError(
            f"no GPU code for the functions of the C library {names}",
            help="compute in float32, or leave the operator to another toolchain",
        )
    return EmittedKernels(module.text(), tuple(launches), listed.workspace)


def _emit(function: PrimFunc, kernel: Kernel, name: str, isa: Isa, module: ModuleText) -> Launch:
    alone = PrimFunc(kernel.arguments, kernel.block_loop, function.attrs)
    contract = " contract" if function.attrs.get("contract") else ""
    state = new_function(KernelState(name, isa, Facts(alone), module, contract), None)
    head = [*_indices(state, kernel), *_global_buffers(state, kernel), *_shared_buffers(state, kernel, name)]
    statements = KernelStatements(state, Scalars(state), threads=kernel.thread_loop.extent)
    statements.emit(kernel.block_loop)
    state.builder.do("ret void")
    attributes = f'nounwind "nvvm.maxntid"="{kernel.thread_loop.extent}"'
    params = ", ".join(
        f"ptr addrspace(1){_promises(kernel, buffer)} align {_ALIGNMENT} %a{slot}"
        for slot, buffer in enumerate(kernel.arguments)
    )
    lines = "\n".join((*head, state.builder.text()))
    text = f"define ptx_kernel void @{name}({params}) {attributes} {{\nentry:\n{lines}\n}}"
    if kernel.shared:
        module.functions.append(_shared_memory(name, kernel.shared_bytes))
    module.functions.append(text)
    arguments = tuple(buffer.name for buffer in kernel.arguments)
    return Launch(
        *(name, kernel.block_loop.extent, kernel.thread_loop.extent, arguments, kernel.shared_bytes),
        has_barriers=any(f"@{name}" in text for name in (BARRIER, MATRICES, MMA)),
        is_counted=kernel.block_loop.count is not None,
    )


def shared_name(name: str, size: int) -> str:
    """Return the symbol of a kernel's shared memory of a size; PTX allows no dot in one without a size."""
    return f"{name}{'_' if size > DECLARED_SHARED_BYTES else '.'}shared"


def _shared_memory(name: str, size: int) -> str:
    """Return the declaration of a kernel's shared memory; without a size where its launch adds it."""
    symbol = f"@{shared_name(name, size)}"
    if size > DECLARED_SHARED_BYTES:
        return f"{symbol} = external addrspace(3) global [0 x i8], align {SHARED_ALIGNMENT}"
    return f"{symbol} = internal addrspace(3) global [{size} x i8] undef, align {SHARED_ALIGNMENT}"


def _promises(kernel: Kernel, buffer: Buffer) -> str:
    """Return the attributes of a pointer; threads may exchange elements of what is both read and written."""
    if buffer not in kernel.writes:
        return " noalias readonly"
    return "" if buffer in kernel.reads else " noalias"


def _indices(state: FunctionState, kernel: Kernel) -> list[str]:
    lines = []
    for loop, intrinsic, name in (
        (kernel.block_loop, BLOCK_INDEX, "%block"),
        (kernel.thread_loop, THREAD_INDEX, THREAD_NUMBER),
    ):
        state.builder.declare("i32", intrinsic, "")
        lines += [f"  {name}.index = call i32 @{intrinsic}()", f"  {name} = zext i32 {name}.index to i64"]
        state.env[loop.var.name] = state.symbols.counter(name, 0, loop.extent - 1, state.root)
    return lines


def _global_buffers(state: FunctionState, kernel: Kernel) -> list[str]:
    lines = []
    for slot, buffer in enumerate(kernel.arguments):
        lines.append(f"  %b{slot} = addrspacecast ptr addrspace(1) %a{slot} to ptr")
        align = max(_ALIGNMENT, stored_bytes(buffer.dtype))
        state.memory[buffer.name] = MemoryPlace(buffer.name, f"%b{slot}", buffer.dtype, buffer.shape, align)
    return lines


def _shared_buffers(state: FunctionState, kernel: Kernel, name: str) -> list[str]:
    lines = []
    symbol = shared_name(name, kernel.shared_bytes)
    base = f"addrspacecast (ptr addrspace(3) @{symbol} to ptr)"
    for slot, buffer in enumerate(kernel.shared):
        offset = kernel.shared_offsets[buffer.name]
        lines.append(f"  %s{slot} = getelementptr i8, ptr {base}, i64 {offset}")
        pointer = f"%s{slot}"
        state.memory[buffer.name] = MemoryPlace(
            buffer.name, pointer, buffer.dtype, buffer.shape, SHARED_ALIGNMENT
        )
    return lines
