"""From what a kernel computes to its object code, as the user's cache keeps it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from intarsia.ir import GlobalVar, IRModule, PrimFunc
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import CodegenOptions
from intarsia.native.object_code.kernel_cache import CachedKernel
from intarsia.toolchain.native.record import packing_record, parameter_record
from intarsia.transform import PassContext

if TYPE_CHECKING:  # what makes loops takes a tenth of a second to import, and is needed for new kernels only
    from intarsia.native.compile_kernel import CompiledKernel
    from intarsia.native.graph.library_product import LibraryProduct
    from intarsia.native.schedule import ScheduledDag, ScheduleLog

_NAME: Final = "kernel"


@dataclass(frozen=True, slots=True)
class KernelGenerator:
    """What all kernels of a build share; processes can send it to each other.

    Attributes:
        isa: Instruction set that the code may use.
        threads: Number of threads that will run it.
        log: Schedules; what it does not have gets its default schedule.
        options: LLVM options for the code.
    """

    isa: Isa
    threads: int
    log: ScheduleLog | None
    options: CodegenOptions

    def prepare(
        self, dag: ComputeDAG, carrying: frozenset[str] | None, context: PassContext
    ) -> Callable[[], CachedKernel]:
        """Decide all about the kernel of a DAG, write its loops, and return what generates its code.

        Args:
            dag: DAG of the kernel.
            carrying: For a kernel of any number of items, the names of the placeholders that have each item;
                the DAG is for one item.
            context: Context of the passes on loops.
        """
        from intarsia.native.schedule import scheduled, with_state
        from intarsia.native.tir import default_tir

        isa = self.isa

        def finished(function: PrimFunc) -> PrimFunc:
            passes = default_tir(isa.vector_bytes, isa.vector_registers, isa.caches.first, isa.caches.second)
            return passes(IRModule({GlobalVar(_NAME): function}), context).prim_func(_NAME)

        def lowered(chosen: ScheduledDag) -> PrimFunc:
            return finished(chosen.lowered(isa.caches, isa.vector_bytes))

        state = None if self.log is None else self.log.lookup(dag)
        if carrying is not None:
            from intarsia.toolchain.native.batches.item_function import item_function

            item = item_function(dag, carrying, state, isa, self.threads, lowered, finished)
            facts = {**_dag_facts(dag, item.schedule), "shapes": item.shapes}
            return partial(self._generate, item.function, facts)
        chosen = scheduled(dag, isa, self.threads) if state is None else with_state(dag, state)
        return partial(self._generate, lowered(chosen), _dag_facts(dag, chosen))

    def prepare_call(self, dag: ComputeDAG, product: LibraryProduct) -> Callable[[], CachedKernel]:
        """Return what generates a kernel that calls a library: it reads all placeholders as they are."""

        def generate() -> CachedKernel:
            from intarsia.native.compile_kernel import compile_product

            shapes = [tensor.shape for tensor in (*dag.placeholders, *dag.outputs)]
            facts = {
                "reads": list(range(len(dag.placeholders))),
                "packings": [],
                "library": product.library,
            }
            return _cached_kernel(compile_product(product, shapes, self.isa, self.threads), facts)

        return generate

    def _generate(self, function: PrimFunc, facts: Mapping[str, Any]) -> CachedKernel:
        from intarsia.native.compile_kernel import compile_kernel

        return _cached_kernel(compile_kernel(function, self.isa, self.options), facts)


def _dag_facts(dag: ComputeDAG, chosen: ScheduledDag) -> dict[str, Any]:
    """Return which placeholders the kernel reads, and how they are packed, without names."""
    positions = {tensor.op.name: position for position, tensor in enumerate(dag.placeholders)}
    packings = {
        positions[packing.tensor_name]: packing_record(replace(packing, tensor_name=""))
        for packing in chosen.packings
    }
    return {
        "reads": [positions[tensor.op.name] for tensor in chosen.dag.placeholders],
        "packings": sorted(packings.items()),
    }


def _cached_kernel(kernel: CompiledKernel, facts: Mapping[str, Any]) -> CachedKernel:
    shapes = facts.get("shapes") or [parameter.shape for parameter in kernel.parameters]
    parameters = [
        parameter_record(replace(parameter, name="", shape=shape))
        for parameter, shape in zip(kernel.parameters, shapes, strict=True)
    ]
    text = json.dumps({**facts, "parameters": parameters}, separators=(",", ":"))
    return CachedKernel(kernel.object_code, kernel.scratch_bytes, text)
