"""Compile a state of a kernel's loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.ir import GlobalVar, IRModule, PrimFunc
from intarsia.measure.schedules.code_size import stores_when_unrolled
from intarsia.measure.schedules.saved_kernel import SavedKernel
from intarsia.native.compile_kernel import CompiledKernel
from intarsia.native.emission.emit import emit_llvm
from intarsia.native.execution.array_parameter import parameters_of
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import generate_object_code
from intarsia.native.object_code.kernel_cache import SYMBOL
from intarsia.native.packing import Packing
from intarsia.native.schedule import ScheduledDag
from intarsia.native.tir import default_tir
from intarsia.native.tir.unroll_loop import UnrollLoop
from intarsia.support.errors import CompileError
from intarsia.transform import PassContext
from intarsia.transform.enablement import enablement

_NAME: Final = "kernel"


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleKernel(SavedKernel):
    """The kernel of a schedule.

    Attributes:
        kernel: The compiled kernel.
        reads: Names of the placeholders that it reads, in the order of its parameters; outputs follow them.
        packings: Packed layouts of placeholders whose contents are packed before they are passed.
    """

    kernel: CompiledKernel
    reads: tuple[str, ...]
    packings: tuple[Packing, ...]


def compile_schedule(
    chosen: ScheduledDag, isa: Isa, most_stores: int | None = None, context: PassContext | None = None
) -> ScheduleKernel:
    """Compile a DAG with a state of its loops; the kernel is for a single use, so it is not cached.

    Args:
        chosen: The DAG with its state.
        isa: Instruction set of the code.
        most_stores: Limit of the stores after unrolling. Loops with more are refused before they are
            unrolled: so much code is slow to compile, and runs no faster.
        context: Context of the passes on loops; default: that of this thread.

    Raises:
        UsageError: The state cannot be lowered to loops.
        CompileError: There is too much code, or no llvmlite, or it refuses the code.
    """
    context = PassContext.current().inner() if context is None else context
    function = _run_passes(chosen.lowered(isa.caches), isa, most_stores, context)
    emitted = emit_llvm(function, SYMBOL, isa)
    code = generate_object_code(emitted.text, isa)
    kernel = CompiledKernel(code, isa, parameters_of(function), emitted.scratch_bytes)
    reads = tuple(tensor.op.name for tensor in chosen.dag.placeholders)
    return ScheduleKernel(kernel, reads, chosen.packings)


def _run_passes(function: PrimFunc, isa: Isa, most_stores: int | None, context: PassContext) -> PrimFunc:
    """Run the passes on loops."""
    module = IRModule({GlobalVar(_NAME): function})
    for tir_pass in default_tir(
        isa.vector_bytes, isa.vector_registers, isa.caches.first, isa.caches.second
    ).passes:
        is_run = enablement(tir_pass.info, context).is_enabled
        if most_stores is not None and is_run and isinstance(tir_pass, UnrollLoop):
            stores = stores_when_unrolled(module, _NAME, context)
            if stores > most_stores:
                raise CompileError(f"these loops come to {stores} stores, more than {most_stores}")
        module = tir_pass(module, context) if is_run else module
    return module.prim_func(_NAME)
