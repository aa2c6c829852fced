"""From a program on images of any size to compiled kernels and their calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import Function, GlobalVar, IRModule, PrimFunc
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import structural_key
from intarsia.native.execution.driver import driver_object_code
from intarsia.native.execution.item_kind import ItemKind
from intarsia.native.execution.size_table import Linear, Polynomial, constant, product, total
from intarsia.native.graph import ConvolutionAlgorithms
from intarsia.native.graph.region_plan import Array
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import CodegenOptions
from intarsia.native.object_code.kernel_cache import SYMBOL, CachedKernel, kernel_key
from intarsia.native.schedule import scheduled
from intarsia.native.schedule.schedule_task import work_of
from intarsia.native.sizes.image_grids import grid_function
from intarsia.native.sizes.image_loops import image_function
from intarsia.native.sizes.image_moves import move_function
from intarsia.native.sizes.image_sampling import sample_function
from intarsia.native.sizes.image_writer import ImageMove, Move
from intarsia.native.sizes.shared_loops import SharedLoops
from intarsia.native.te.operators.blocked_layout import BLOCKED, CHANNELWISE
from intarsia.native.tir import default_tir
from intarsia.runtime.kernel import KernelSource
from intarsia.support.aligned_memory import ALIGNMENT, aligned_array
from intarsia.support.digest import digest_text
from intarsia.support.errors import CompileError
from intarsia.support.garbage_collection import pause_garbage_collection
from intarsia.target import Target
from intarsia.toolchain.native.build import weights_by_memory
from intarsia.toolchain.native.caches import kernel_cache
from intarsia.toolchain.native.images.grid_form import GridForms
from intarsia.toolchain.native.images.image_head import ImageHead, image_head
from intarsia.toolchain.native.images.image_memory import BYTES, Place, PlannedCall, TileKernel
from intarsia.toolchain.native.images.image_plan import ImagePlan, image_plan
from intarsia.toolchain.native.images.image_program import ImageProgram, MixedImagesError, has_images
from intarsia.toolchain.native.images.image_region import ImageRegion, Storage
from intarsia.toolchain.native.images.image_rules import image_program
from intarsia.toolchain.native.plan import PlanSettings, costs_of, plan_settings
from intarsia.toolchain.native.record import parameter_of, parameter_record
from intarsia.toolchain.native.region import (
    Argument,
    ArgumentKind,
    NativeRegion,
    RegionCall,
    RegionConstant,
    RegionKernel,
    RegionPort,
)
from intarsia.toolchain.native.simplified import simplified
from intarsia.toolchain.native.source_context import source_context
from intarsia.toolchain.native.version import native_version
from intarsia.toolchain.source_function import source_function
from intarsia.transform import PassContext, PassSettings

_NAME: Final = "kernel"
_CACHE_SHARE: Final = 2
"""Divisor of the size of the second-level cache that gives the bytes of weights that stay in it."""


def build_image_region(source: KernelSource) -> ImageRegion | None:
    """Compile a source for images of any size; None if no parameter is an image whose size may be any.

    Raises:
        CompileError: It has something that there are no kernels for.
    """
    function = source_function(source)
    if not has_images(function):
        return None
    settings = plan_settings(source)
    try:
        with pause_garbage_collection():
            program = image_program(simplified(function, source_context(source)), settings.lanes)
            head = image_head(program, source)
            target = Target(source.target)
            algorithms = ConvolutionAlgorithms.parse(target.option("convolutions", "auto"))
            grids = GridForms(algorithms, costs_of(target, function), settings.isa.caches.second)
            plan = image_plan(program, settings.lanes, grids, () if head is None else head.copies)
            return _Build(source, settings, function, program, plan, head).region()
    except MixedImagesError as error:
        raise CompileError(
            f"native cannot compile this: it runs images of any size, but {error}",
            help="give height and width sizes: --shape name=1,3,224,224",
        ) from error


@dataclass(eq=False)
class _Build:
    """Kernels, constants, numbers and places so far."""

    source: KernelSource
    settings: PlanSettings
    function: Function
    program: ImageProgram
    plan: ImagePlan
    head: ImageHead | None
    _kernels: dict[str, RegionKernel] = field(default_factory=dict)
    _reads: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _constants: dict[int, tuple[int, RegionConstant]] = field(default_factory=dict)
    _alive: list[Array] = field(default_factory=list)
    _numbers: dict[Polynomial, int] = field(default_factory=dict)
    _places: dict[tuple[int, Polynomial], int] = field(default_factory=dict)
    _ends: dict[int, tuple[int, int]] = field(default_factory=dict)

    def region(self) -> ImageRegion:
        """Return the compiled region."""
        program, isa = self.program, self.settings.isa
        keys = self._compiled()
        pending = [
            self._call(number, call, key)
            for number, (call, key) in enumerate(zip(self.plan.calls, keys, strict=True))
        ]
        storages = list(self.plan.storages)
        if self.head is not None:
            arena = product(program.count, constant(self.head.region.arena_bytes))
            storages.append(total(arena, product(constant(ALIGNMENT))))
            pending += self._head_calls(self.head, len(storages) - 1, len(pending))
        weights = weights_by_memory(self.source.weights)
        constants = [RegionConstant(np.ones((), np.int64)) for _ in self._numbers]
        for _, constant_ in self._constants.values():
            array = constant_.array
            name = constant_.weight or weights.get((array.ctypes.data, array.nbytes))
            constants.append(replace(constant_, weight=name))
        calls = tuple(self._with_positions(call) for call in pending)
        names = [param.name for param in self.function.params]
        images = [image for image in program.images if image.param is not None]
        params = [self._shape(image.channels, image.level) for image in images]
        of_head = iter(() if self.head is None else self.head.shapes)
        results = [
            next(of_head) if image is None else self._shape(image.channels, image.level)
            for image in program.results
        ]
        region = NativeRegion(
            isa,
            driver_object_code(isa.architecture),
            self.settings.threads,
            (*self._kernels.values(), *(() if self.head is None else self.head.region.kernels)),
            calls,
            tuple(constants),
            tuple(_port(name) for name in names),
            self._result_ports(),
            (),
            len(self._places) * ALIGNMENT,
        )
        memory = tuple(Storage(size, *self._ends.get(number, (0, 0))) for number, size in enumerate(storages))
        return ImageRegion(
            program.table.table(),
            tuple(self._numbers),
            tuple(self._places),
            memory,
            tuple(params),
            tuple(results),
            tuple(dict.fromkeys(pair for pair in program.equal if pair[0] != pair[1])),
            tuple(dict.fromkeys(extent for image in program.images for extent in image.level if extent[1])),
            region,
        )

    def _shape(self, channels: int, level: tuple[Linear, Linear]) -> tuple[Linear, ...]:
        return self.program.count, constant(channels), *level

    def _result_ports(self) -> tuple[RegionPort, ...]:
        """Return the ports of results; those of the head have the shapes for one item."""
        of_head = iter(() if self.head is None else self.head.region.results)
        return tuple(
            replace(next(of_head), name=f"result {at}") if image is None else _port(f"result {at}")
            for at, image in enumerate(self.program.results)
        )

    def _head_calls(self, head: ImageHead, storage: int, first: int) -> list[RegionCall]:
        """Return the calls of the head, behind others; its arena is a storage."""
        region, params = head.region, self.plan.head
        slots = [at for at, image in enumerate(self.program.results) if image is None]
        count = product(self.program.count)
        kinds = [count if kind is ItemKind.TOKENS else product(constant(1)) for kind in ItemKind]

        def argument(number: int, given: Argument) -> Argument:
            match given.kind:
                case ArgumentKind.CONSTANT if given.number < len(kinds):
                    position = self._numbers.setdefault(kinds[given.number], len(self._numbers))
                    return Argument(ArgumentKind.CONSTANT, position)
                case ArgumentKind.CONSTANT:
                    of_head = region.constants[given.number]
                    return Argument(ArgumentKind.CONSTANT, -1 - self._constant(of_head.array, of_head))
                case ArgumentKind.SLOT if given.number < len(params):
                    return self._in_arena(params[given.number], number)
                case ArgumentKind.SLOT:
                    at = len(region.params)
                    return Argument(ArgumentKind.SLOT, len(self.function.params) + slots[given.number - at])
                case ArgumentKind.ARENA:
                    begin = product(self.program.count, constant(given.number))
                    return self._in_arena(Place(None, storage, begin), number)

        calls = []
        for number, call in enumerate(region.calls, first):
            arguments = tuple(argument(number, item) for item in call.arguments)
            calls.append(replace(call, kernel=len(self._kernels) + call.kernel, arguments=arguments))
        return calls

    def _in_arena(self, array: Place, number: int) -> Argument:
        """Return an argument in a storage, which a call refers to."""
        first, _ = self._ends.get(array.storage, (number, number))
        self._ends[array.storage] = first, number
        at = self._places.setdefault((array.storage, array.begin), len(self._places))
        return Argument(ArgumentKind.ARENA, at * ALIGNMENT)

    def _call(self, number: int, call: PlannedCall, key: str) -> RegionCall:
        """Return a call of a kernel; constants have negative positions until all numbers are known."""
        arguments = []
        for name in self._reads[key]:
            given = call.arrays[name]
            if not isinstance(given, Place):
                arguments.append(Argument(ArgumentKind.CONSTANT, -1 - self._constant(given)))
            elif given.slot is not None:
                arguments.append(Argument(ArgumentKind.SLOT, given.slot))
            else:
                arguments.append(self._in_arena(given, number))
        strides = [item for name in self._reads[key] for item in call.strides.get(name, ())]
        for polynomial in (*call.numbers, *strides):
            position = self._numbers.setdefault(polynomial, len(self._numbers))
            arguments.append(Argument(ArgumentKind.CONSTANT, position))
        kernel = list(self._kernels).index(key)
        computation = digest_text([key])
        is_move = isinstance(call.kernel, ImageMove)
        return RegionCall(kernel, tuple(arguments), "", computation, call.name, call.nodes, is_move)

    def _with_positions(self, call: RegionCall) -> RegionCall:
        count = len(self._numbers)
        arguments = tuple(
            replace(argument, number=count - 1 - argument.number) if argument.number < 0 else argument
            for argument in call.arguments
        )
        return replace(call, arguments=arguments)

    def _constant(self, array: Array, constant_: RegionConstant | None = None) -> int:
        """Return the position of a constant behind the numbers."""
        if id(array) not in self._constants:
            self._constants[id(array)] = (
                len(self._constants),
                constant_ or RegionConstant(aligned_array(array)),
            )
            self._alive.append(array)
        return self._constants[id(array)][0]

    def _compiled(self) -> list[str]:
        """Compile the kernels of all calls, each once, and return the key of each call.

        LLVM generates a kernel while the loops of the next one are written.
        """
        settings, context = self.settings, source_context(self.source)
        context = PassContext.current().inner() if context is None else context
        cache, is_cached = kernel_cache(), not context.instruments
        loops = _Loops(settings.isa, settings.threads, context)
        keys = [self._key(call.kernel, context) for call in self.plan.calls]
        kernels = dict(zip(keys, (call.kernel for call in self.plan.calls), strict=True))
        with ThreadPoolExecutor(1) as emitter:
            kept = {key: cache.get(key) if is_cached else None for key in kernels}
            waiting = {
                key: emitter.submit(loops.prepared(kernel, settings.options))
                for key, kernel in kernels.items()
                if kept[key] is None
            }
            for key, generated in waiting.items():
                kept[key] = cache.get_or_build(key, generated.result) if is_cached else generated.result()
        for key, kernel in kernels.items():
            built = kept[key]
            assert built is not None, "it was generated"
            facts, names = json.loads(built.facts), _array_names(kernel)
            parameters = tuple(
                replace(parameter_of(record), name=f"p{at}") for at, record in enumerate(facts["parameters"])
            )
            self._reads[key] = tuple(names[position] for position in facts["reads"])
            self._kernels[key] = RegionKernel(built.object_code, SYMBOL, parameters, built.scratch_bytes)
        return keys

    def _key(self, kernel: TileKernel | ImageMove, context: PassContext) -> str:
        settings = self.settings
        if isinstance(kernel, ImageMove):
            parts = [repr(kernel)]
        else:
            names = _array_names(kernel)
            accesses = [repr(kernel.accesses.get(name)) for name in names]
            parts = [
                *(structural_key(dag) for dag in kernel.dags.values()),
                *map(str, kernel.dags),
                str(kernel.tile),
                *accesses,
            ]
        numbers = (str(settings.threads), str(settings.isa.machine))
        source = digest_text(
            ["images", native_version(), *parts, *numbers, *PassSettings.of(context).digest_parts]
        )
        return kernel_key(source, settings.isa, settings.options)


def _array_names(kernel: TileKernel | ImageMove) -> tuple[str, ...]:
    """Return the names of the arrays of a kernel, in an order that equal kernels share."""
    if isinstance(kernel, ImageMove):
        return ("y",) if kernel.move is Move.BORDER else ("x", "y")
    dag = next(iter(kernel.dags.values()))
    (output,) = dag.outputs
    return (*(tensor.op.name for tensor in dag.placeholders), output.buffer.name)


def _is_channelwise(kernel: TileKernel) -> bool:
    """Return whether each channel is computed from itself: planes are read one after another then."""
    dag = next(iter(kernel.dags.values()))
    return any(op.attrs.get(BLOCKED) == CHANNELWISE for op in dag.ops)


def _port(name: str) -> RegionPort:
    """Return a port of an image; its shape is that of the call."""
    return RegionPort(name, (), np.dtype(np.float32))


@dataclass(frozen=True, slots=True)
class _Loops:
    """What is needed to write the loops of a kernel."""

    isa: Isa
    threads: int
    context: PassContext

    def prepared(self, kernel: TileKernel | ImageMove, options: CodegenOptions) -> Callable[[], CachedKernel]:
        """Write the loops of a kernel, and return what generates its code.

        Raises:
            CompileError: Code for tiles of different widths reads different arrays.
        """
        function = self._moved(kernel) if isinstance(kernel, ImageMove) else self._of_tiles(kernel)
        names = _array_names(kernel)
        has_images = set(names) if isinstance(kernel, ImageMove) else set(kernel.accesses)
        shapes = [() if buffer.name in has_images else buffer.shape for buffer in function.params]
        reads = [names.index(buffer.name) for buffer in function.params if buffer.name in names]

        def generated() -> CachedKernel:
            compiled = compile_kernel(function, self.isa, options)
            parameters = [
                parameter_record(replace(parameter, name="", shape=shape))
                for parameter, shape in zip(compiled.parameters, shapes, strict=True)
            ]
            text = json.dumps({"reads": reads, "parameters": parameters}, separators=(",", ":"))
            return CachedKernel(compiled.object_code, compiled.scratch_bytes, text)

        return generated

    def _moved(self, form: ImageMove) -> PrimFunc:
        write = sample_function if form.move in (Move.SAMPLE, Move.INTERPOLATE) else move_function
        return self._finished(write(form, SharedLoops.of(self.isa, self.threads)))

    def _of_tiles(self, kernel: TileKernel) -> PrimFunc:
        functions, work = {}, {}
        for width, dag in kernel.dags.items():
            chosen = scheduled(dag, self.isa, 1)
            if chosen.packings:
                raise CompileError("native cannot pack a matrix for tiles of images")
            functions[width] = self._finished(chosen.lowered(self.isa.caches))
            work[width] = work_of(dag.ops)
        names = {tuple(buffer.name for buffer in function.params) for function in functions.values()}
        if len(names) > 1:
            raise CompileError("native has other arguments for tiles of other widths")
        weights = sum(
            prod(tensor.shape) * BYTES
            for tensor in next(iter(kernel.dags.values())).placeholders
            if tensor.op.name not in kernel.accesses
        )
        keeps = kernel.tile < 2 and (
            weights > self.isa.caches.second // _CACHE_SHARE or _is_channelwise(kernel)
        )
        given, shared = (functions, kernel.accesses), SharedLoops.of(self.isa, self.threads)
        if kernel.tile:
            return grid_function(*given, kernel.tile, work, shared, keeps_weights=keeps)
        return image_function(*given, work, shared, keeps_weights=keeps)

    def _finished(self, function: PrimFunc) -> PrimFunc:
        isa = self.isa
        caches = isa.caches.first, isa.caches.second
        passes = default_tir(isa.vector_bytes, isa.vector_registers, *caches, may_overlap=True)
        return passes(IRModule({GlobalVar(_NAME): function}), self.context).prim_func(_NAME)
