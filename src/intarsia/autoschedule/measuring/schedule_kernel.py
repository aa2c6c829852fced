"""From a state of a task's loops to its kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.autoschedule.measuring.code_size import stores_when_unrolled
from intarsia.ir import GlobalVar, IRModule, PrimFunc
from intarsia.native.compile_kernel import SYMBOL, CompiledKernel
from intarsia.native.emission.emit import emit_llvm
from intarsia.native.execution.array_parameter import parameters_of
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import generate_object_code
from intarsia.native.packing import Packing
from intarsia.native.schedule import ScheduledDag
from intarsia.native.tir import default_tir
from intarsia.native.tir.unroll_loop import UnrollLoop
from intarsia.support.errors import CompileError
from intarsia.transform import PassContext
from intarsia.transform.enablement import enablement

_NAME: Final = "kernel"


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleKernel:
    """The kernel of a schedule.

    Attributes:
        kernel: Compiled.
        reads: Names of the placeholders that it reads, in the order of its parameters; outputs follow them.
        packings: How the contents of some of them are packed before they are passed.
    """

    kernel: CompiledKernel
    reads: tuple[str, ...]
    packings: tuple[Packing, ...]


def compile_schedule(
    chosen: ScheduledDag, isa: Isa, most_stores: int | None = None, context: PassContext | None = None
) -> ScheduleKernel:
    """The kernel of a DAG with a state of its loops; it is for one use, so no cache is asked.

    Args:
        chosen: The DAG with its state.
        isa: What code may use.
        most_stores: Loops that come to more stores than that are refused before they cost much time: so
            much code is slow to make, and no faster for it.
        context: Context of the passes on loops; default: that of this thread.

    Raises:
        UsageError: The loops cannot be written.
        CompileError: There is too much code, or no llvmlite, or it refuses the code.
    """
    context = PassContext.current().inner() if context is None else context
    function = _passed(chosen.lowered(isa.caches), isa, most_stores, context)
    emitted = emit_llvm(function, SYMBOL, isa)
    code = generate_object_code(emitted.text, isa)
    kernel = CompiledKernel(code, isa, parameters_of(function), emitted.scratch_bytes)
    reads = tuple(tensor.op.name for tensor in chosen.dag.placeholders)
    return ScheduleKernel(kernel, reads, chosen.packings)


def _passed(function: PrimFunc, isa: Isa, most_stores: int | None, context: PassContext) -> PrimFunc:
    """The loops after the passes on them."""
    module = IRModule({GlobalVar(_NAME): function})
    for each in default_tir(isa.vector_bytes, isa.vector_registers).passes:
        is_run = enablement(each.info, context).is_enabled
        if most_stores is not None and is_run and isinstance(each, UnrollLoop):
            stores = stores_when_unrolled(module, _NAME, context)
            if stores > most_stores:
                raise CompileError(f"these loops come to {stores} stores, more than {most_stores}")
        module = each(module, context) if is_run else module
    return module.prim_func(_NAME)
