"""From what kernels compute to the kernels, by way of the user's cache.

The key of the cache is known before anything is decided about a kernel, so that one that is there costs no
more than reading it. Python prepares a kernel while LLVM generates the one before: llvmlite lets go of the
interpreter, and lets in one caller at a time. Where many kernels are missing, other processes help.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import DEFAULT_OPTIONS, CodegenOptions
from intarsia.native.object_code.kernel_cache import SYMBOL, CachedKernel, KernelCache, kernel_key
from intarsia.support.digest import digest_text
from intarsia.toolchain.native.generate_kernel import KernelGenerator
from intarsia.toolchain.native.helper_processes import Row, count_helpers, helper_processes
from intarsia.toolchain.native.record import packing_of, parameter_of
from intarsia.toolchain.native.region import RegionKernel
from intarsia.toolchain.native.version import native_version
from intarsia.transform import PassContext, PassSettings

if TYPE_CHECKING:
    from intarsia.native.graph.library_product import LibraryProduct
    from intarsia.native.packing import Packing
    from intarsia.native.schedule import ScheduleLog

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
            are for one item; the last parameters of the kernels are numbers of items.

    Raises:
        CompileError: There is no llvmlite, or it refuses the code.
    """
    context = PassContext.current().inner() if context is None else context
    is_cached = not context.instruments
    generator = KernelGenerator(isa, threads, log, options)
    repeated = {dag: None if carrying is None else carrying[dag] for dag in dags}
    keys = {dag: _key(dag, generator, products.get(dag), context, items) for dag, items in repeated.items()}
    kept: dict[str, CachedKernel] = {}
    missing: dict[ComputeDAG, frozenset[str] | None] = {}
    for key, dag in {key: dag for dag, key in keys.items()}.items():
        cached = cache.get(key) if is_cached else None
        if cached is None:
            missing[dag] = repeated[dag]
        else:
            kept[key] = cached
    for dag, made in _generated(missing, generator, products, context):
        kept[keys[dag]] = cache.get_or_build(keys[dag], made) if is_cached else made()
    return {dag: _compiled(dag, kept[key]) for dag, key in keys.items()}


def _generated(
    missing: Mapping[ComputeDAG, frozenset[str] | None],
    generator: KernelGenerator,
    products: Mapping[ComputeDAG, LibraryProduct],
    context: PassContext,
) -> Iterator[tuple[ComputeDAG, Callable[[], CachedKernel]]]:
    """Generate kernels, and yield what returns each; helpers generate some where there are many.

    Instruments watch the passes of this process: a context with instruments has no helpers.
    """
    row: Row = deque((dag, carrying) for dag, carrying in missing.items() if dag not in products)
    helpers = 0 if context.instruments else count_helpers(len(row))
    waiting: dict[ComputeDAG, Future[CachedKernel]] = {}
    with (
        helper_processes(helpers, row, generator, PassSettings.of(context)) as others,
        ThreadPoolExecutor(1) as emitter,
    ):
        for dag, product in products.items():
            if dag in missing:
                waiting[dag] = emitter.submit(generator.prepare_call(dag, product))
        while (task := row.popleft() if row else others.take_back()) is not None:
            waiting[task[0]] = emitter.submit(generator.prepare(*task, context))
            others.attend()
        received = others.finish()
        for dag, carrying in missing.items():
            if dag not in received and dag not in waiting:  # its helper failed
                waiting[dag] = emitter.submit(generator.prepare(dag, carrying, context))
        for dag in missing:
            yield dag, partial(received.__getitem__, dag) if dag in received else waiting[dag].result


def _key(
    dag: ComputeDAG,
    generator: KernelGenerator,
    product: LibraryProduct | None,
    context: PassContext,
    carrying: frozenset[str] | None,
) -> str:
    """Names do not count, so that equal kernels of several models are one.

    Of a schedule log only what it says about this kernel counts; a kernel that is not in it has the default
    schedule.
    """
    computed = structural_key(dag)
    history = None if generator.log is None else generator.log.history(computed)
    how = _BY_RULE if history is None else f"schedule {history}"
    how = how if product is None else str(product)
    if carrying is not None:
        positions = [n for n, tensor in enumerate(dag.placeholders) if tensor.op.name in carrying]
        how = f"{how}, any number of items in {positions}"
    settings = PassSettings.of(context).digest_parts
    numbers = (str(generator.threads), str(generator.isa.machine))
    source = digest_text([how, native_version(), computed, *numbers, *settings])
    return kernel_key(source, generator.isa, generator.options)


def _compiled(dag: ComputeDAG, kept: CachedKernel) -> CompiledDag:
    """A kernel with the names of a DAG; parameters behind its outputs are numbers of items."""
    facts = json.loads(kept.facts)
    given = [tensor.op.name for tensor in dag.placeholders]
    reads = tuple(given[position] for position in facts["reads"])
    named = (*reads, *(tensor.buffer.name for tensor in dag.outputs))
    numbers = len(facts["parameters"]) - len(named)
    names = (*named, *(f"number of items {position}" for position in range(numbers)))
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
