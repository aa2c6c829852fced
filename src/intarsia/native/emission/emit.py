"""Emission of a loop function as LLVM IR text.

The kernel is `void name(ptr args, ptr runtime)`. `args` points to the addresses of the buffers in the order
of the parameters; the runtime's record begins with the function that runs parallel loops, the address of this
thread's scratch and its bytes. That function is called as `parallel_for(runtime, body, closure, extent)` and
calls `body(closure, begin, end, scratch)` for ranges, begin < end, that make up 0 to extent, with the scratch
of the thread that calls. Buffers are promised not to overlap, and to lie at multiples of the size of their
elements, or of the attribute `alignment` (bytes) of the loop function. The attribute `contract` allows
products and sums to be fused, and 0 to be left out of a sum, which then may be -0; `streamed` names buffers
whose vectors are prefetched.
"""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir.prim_func import PrimFunc
from intarsia.native.emission.builder import Builder, ModuleText
from intarsia.native.emission.facts import Facts
from intarsia.native.emission.parallel import new_function
from intarsia.native.emission.prefetch import prefetches
from intarsia.native.emission.scalar import Scalars
from intarsia.native.emission.state import AccessSite, FunctionState, KernelState, MemoryPlace
from intarsia.native.emission.statement import Statements
from intarsia.native.emission.types import stored_bytes
from intarsia.native.machine.isa import Isa


@dataclass(frozen=True)
class EmittedKernel:
    """A kernel as LLVM IR.

    Attributes:
        text: LLVM module, in which only the kernel is visible.
        scratch_bytes: Scratch memory that each thread needs, in bytes, at an address that is a multiple of
            64.
        symbols: Called functions of the C mathematics library, sorted.
        sites: Checks of bounds-checked code; the number in the runtime record counts from 1.
    """

    text: str
    scratch_bytes: int
    symbols: tuple[str, ...] = ()
    sites: tuple[AccessSite, ...] = ()


def emit_llvm(
    prim_func: PrimFunc, name: str, isa: Isa, *, bounds_checked: bool = False, prefetch: bool = True
) -> EmittedKernel:
    """Emit a verified loop function as a kernel of that name, with or without software prefetches.

    Bounds-checked code runs in one thread, one lane at a time; `checks` describes what it does at an index
    out of bounds.
    """
    contract = " contract" if prim_func.attrs.get("contract") else ""
    kernel = KernelState(name, isa, Facts(prim_func), ModuleText(), contract, bounds_checked)
    state = new_function(kernel, "%runtime")
    alignment = prim_func.attrs.get("alignment")
    named = prim_func.attrs.get("streamed") if prefetch else None
    streamed = tuple(name for name in named if isinstance(name, str)) if isinstance(named, tuple) else ()
    kernel.prefetches = prefetches(prim_func, kernel.facts, streamed, isa.caches.second)
    for slot, buffer in enumerate(prim_func.params):
        align = max(alignment if isinstance(alignment, int) else 1, stored_bytes(buffer.dtype))
        place = MemoryPlace(buffer.name, f"%b{slot}", buffer.dtype, buffer.shape, align)
        place.is_streamed = buffer.name in streamed
        state.memory[buffer.name] = place
    Statements(state, Scalars(state)).emit(prim_func.body)
    state.builder.do("ret void")
    _finish(state, len(prim_func.params))
    return EmittedKernel(
        kernel.module.text(), kernel.scratch_bytes, tuple(sorted(kernel.module.symbols)), tuple(kernel.sites)
    )


def _finish(state: FunctionState, count: int) -> None:
    kernel = state.kernel
    params = [f"ptr noalias %b{slot}" for slot in range(count)]
    params += ["ptr noalias %scratch", "ptr %runtime"]
    head = f"define internal void @{kernel.name}.main({', '.join(params)}) noinline nounwind {{\nentry:\n"
    kernel.module.functions.append(f"{head}{state.builder.text()}\n}}")
    builder = Builder(kernel.module)
    args = []
    for slot in range(count):
        address = builder.value_of(f"getelementptr i8, ptr %args, i64 {8 * slot}")
        args.append(f"ptr {builder.value_of(f'load ptr, ptr {address}, align 8')}")
    address = builder.value_of("getelementptr i8, ptr %runtime, i64 8")
    args += [f"ptr {builder.value_of(f'load ptr, ptr {address}, align 8')}", "ptr %runtime"]
    builder.do(f"call void @{kernel.name}.main({', '.join(args)})")
    builder.do("ret void")
    text = f"define void @{kernel.name}(ptr %args, ptr %runtime) nounwind {{\nentry:\n{builder.text()}\n}}"
    kernel.module.functions.append(text)
