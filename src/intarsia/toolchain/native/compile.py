"""From what kernels compute to the kernels, by way of the user's cache.

The key of the cache is known before anything is decided about a kernel, so that one that is there costs no
more than reading it. Python prepares a kernel while LLVM generates the one before: llvmlite lets go of the
interpreter, and lets in one caller at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from intarsia.ir import GlobalVar, IRModule, PrimFunc
from intarsia.native.compile_kernel import SYMBOL, CompiledKernel, compile_kernel, compile_product
from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import DEFAULT_OPTIONS, CodegenOptions
from intarsia.native.object_code.kernel_cache import CachedKernel, KernelCache, kernel_key
from intarsia.native.sizes import ITEMS
from intarsia.support.digest import digest_text
from intarsia.toolchain.native.batches.item_function import item_function
from intarsia.toolchain.native.record import packing_of, packing_record, parameter_of, parameter_record
from intarsia.toolchain.native.region import RegionKernel
from intarsia.toolchain.native.version import native_version
from intarsia.transform import PassContext, PassSettings

if TYPE_CHECKING:
    from intarsia.native.graph.library_product import LibraryProduct
    from intarsia.native.packing import Packing
    from intarsia.native.schedule import ScheduledDag, ScheduleLog

_NAME: Final = "kernel"
_BY_RULE: Final = "default schedule"


@dataclass(frozen=True, slots=True, eq=False)
class CompiledDag:
    """The kernel of a DAG.

    Attributes:
        kernel: Compiled.
        reads: Names of the placeholders that it reads, in the order of its parameters; outputs follow them.
        packings: Packing of each constant that is packed before it is passed, by its name.
    """

    kernel: RegionKernel
    reads: tuple[str, ...]
    packings: Mapping[str, Packing]


def compile_dags(
    dags: Iterable[ComputeDAG],
    isa: Isa,
    threads: int,
    cache: KernelCache,
    log: ScheduleLog | None = None,
    options: CodegenOptions = DEFAULT_OPTIONS,
    products: Mapping[ComputeDAG, LibraryProduct] = MappingProxyType({}),
    context: PassContext | None = None,
    carrying: Mapping[ComputeDAG, frozenset[str]] | None = None,
) -> dict[ComputeDAG, CompiledDag]:
    """The kernels of DAGs, each made once.

    A context with instruments takes no kernel from the cache and puts none there: instruments watch passes,
    and one that skips a pass changes the kernel without a trace in its key.

    Args:
        dags: DAGs to compile, with repetitions.
        isa: Instruction set that the code may use.
        threads: Number of threads that will run it.
        cache: Cache that kernels are read from and stored in.
        log: Schedules; what it does not have gets its default schedule.
        options: LLVM options for the code.
        products: Calls of a library that compute DAGs in place of loops.
        context: Context of the passes on loops; default: that of this thread.
        carrying: For kernels of any number of items, the names of the placeholders that have each item. DAGs
            are for one item; the last parameter of the kernels is the number of items.

    Raises:
        CompileError: There is no llvmlite, or it refuses the code.
    """
    order = tuple(dict.fromkeys(dags))
    context = PassContext.current().inner() if context is None else context
    is_cached = not context.instruments
    kept: dict[ComputeDAG, CachedKernel] = {}
    waiting: dict[ComputeDAG, tuple[str, Future[CachedKernel]]] = {}
    with ThreadPoolExecutor(1) as generator:
        for dag in order:
            product = products.get(dag)
            repeated = None if carrying is None else carrying[dag]
            key = _key(dag, isa, threads, log, options, product, context, repeated)
            cached = cache.get(key) if is_cached else None
            if cached is None:
                prepared = (
                    _prepared(dag, isa, threads, log, options, context, repeated)
                    if product is None
                    else partial(_generated_call, dag, product, isa, threads)
                )
                waiting[dag] = key, generator.submit(prepared)
            else:
                kept[dag] = cached
        for dag, (key, made) in waiting.items():
            kept[dag] = cache.get_or_build(key, made.result) if is_cached else made.result()
    extra = () if carrying is None else (ITEMS,)
    return {dag: _compiled(dag, kept[dag], extra) for dag in order}


def _key(
    dag: ComputeDAG,
    isa: Isa,
    threads: int,
    log: ScheduleLog | None,
    options: CodegenOptions,
    product: LibraryProduct | None,
    context: PassContext,
    carrying: frozenset[str] | None,
) -> str:
    """Names do not count, so that equal kernels of several models are one.

    Of a schedule log only what it says about this kernel counts; a kernel that is not in it has the default
    schedule.
    """
    computed = structural_key(dag)
    history = None if log is None else log.history(computed)
    how = _BY_RULE if history is None else f"schedule {history}"
    how = how if product is None else str(product)
    if carrying is not None:
        numbers = [n for n, tensor in enumerate(dag.placeholders) if tensor.op.name in carrying]
        how = f"{how}, any number of items in {numbers}"
    settings = PassSettings.of(context).digest_parts
    source = digest_text([how, native_version(), computed, str(threads), str(isa.machine), *settings])
    return kernel_key(source, isa, options)


def _prepared(
    dag: ComputeDAG,
    isa: Isa,
    threads: int,
    log: ScheduleLog | None,
    options: CodegenOptions,
    context: PassContext,
    carrying: frozenset[str] | None,
) -> Callable[[], CachedKernel]:
    """What generates the code of a DAG: all is decided about it, and its loops are written."""
    from intarsia.native.schedule import scheduled, with_state
    from intarsia.native.tir import default_tir

    def finished(function: PrimFunc) -> PrimFunc:
        passes = default_tir(isa.vector_bytes, isa.vector_registers)
        return passes(IRModule({GlobalVar(_NAME): function}), context).prim_func(_NAME)

    def lowered(chosen: ScheduledDag) -> PrimFunc:
        return finished(chosen.lowered(isa.caches))

    state = None if log is None else log.lookup(dag)
    if carrying is not None:
        item = item_function(dag, carrying, state, isa, threads, lowered, finished)
        places = {**_places(dag, item.schedule), "shapes": item.shapes}
        return partial(_generated, item.function, isa, options, places)
    chosen = scheduled(dag, isa, threads) if state is None else with_state(dag, state)
    function = lowered(chosen)
    return partial(_generated, function, isa, options, _places(dag, chosen))


def _places(dag: ComputeDAG, chosen: ScheduledDag) -> dict[str, Any]:
    """Which placeholders the kernel reads, and how they are packed, without names."""
    places = {tensor.op.name: place for place, tensor in enumerate(dag.placeholders)}
    packings = {
        places[each.tensor_name]: packing_record(replace(each, tensor_name="")) for each in chosen.packings
    }
    return {
        "reads": [places[tensor.op.name] for tensor in chosen.dag.placeholders],
        "packings": sorted(packings.items()),
    }


def _generated(
    function: PrimFunc, isa: Isa, options: CodegenOptions, places: Mapping[str, Any]
) -> CachedKernel:
    return _cached(compile_kernel(function, isa, options), places)


def _generated_call(dag: ComputeDAG, product: LibraryProduct, isa: Isa, threads: int) -> CachedKernel:
    """The kernel that calls a library: it reads all placeholders as they are."""
    shapes = [tensor.shape for tensor in (*dag.placeholders, *dag.outputs)]
    places = {"reads": list(range(len(dag.placeholders))), "packings": [], "library": product.library}
    return _cached(compile_product(product, shapes, isa, threads), places)


def _cached(kernel: CompiledKernel, places: Mapping[str, Any]) -> CachedKernel:
    shapes = places.get("shapes") or [parameter.shape for parameter in kernel.parameters]
    parameters = [
        parameter_record(replace(parameter, name="", shape=shape))
        for parameter, shape in zip(kernel.parameters, shapes, strict=True)
    ]
    facts = {**places, "parameters": parameters}
    return CachedKernel(kernel.object_code, kernel.scratch_bytes, json.dumps(facts, separators=(",", ":")))


def _compiled(dag: ComputeDAG, kept: CachedKernel, extra: tuple[str, ...]) -> CompiledDag:
    """A kernel with the names of a DAG, and of the parameters behind its outputs."""
    facts = json.loads(kept.facts)
    given = [tensor.op.name for tensor in dag.placeholders]
    reads = tuple(given[position] for position in facts["reads"])
    names = (*reads, *(tensor.buffer.name for tensor in dag.outputs), *extra)
    parameters = tuple(
        replace(parameter_of(record), name=name)
        for name, record in zip(names, facts["parameters"], strict=True)
    )
    packings = {
        given[position]: replace(packing_of(record), tensor_name=given[position])
        for position, record in facts["packings"]
    }
    return CompiledDag(
        RegionKernel(kept.object_code, SYMBOL, parameters, kept.scratch_bytes, facts.get("library", "")),
        reads,
        packings,
    )
