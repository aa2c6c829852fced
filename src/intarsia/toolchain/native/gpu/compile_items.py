"""Compile sources with sizes that are known at run time only to programs of GPU kernels for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from intarsia.ir import Function
from intarsia.native.dag import ComputeDAG
from intarsia.native.emission.builder import ModuleText
from intarsia.native.execution.item_kind import ItemKind
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.gpu.emit_kernels import EmittedKernels, Launch, emit_kernels
from intarsia.native.gpu.kernels_of_items import Tiling, kernels_of_items
from intarsia.native.gpu.text_kernels import text_kernel
from intarsia.native.gpu.token_attention_kernel import token_attention_kernel
from intarsia.native.gpu.token_filter_kernel import token_filter_kernel
from intarsia.native.graph import KernelPlan
from intarsia.native.machine.isa import Isa
from intarsia.native.sizes import text_loops_of, token_attention_of, token_filter_of
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.errors import CompileError
from intarsia.toolchain.native.batches.batch_source import BatchSource, batch_source
from intarsia.toolchain.native.batches.item_plan import ItemPlan, item_plan
from intarsia.toolchain.native.batches.item_region import ItemRegion
from intarsia.toolchain.native.batches.token_source import TokenSource, token_source
from intarsia.toolchain.native.build import RegionBuild, port_of, weights_by_memory
from intarsia.toolchain.native.gpu.compile_program import (
    ImageMaker,
    compile_program,
    image_of,
    parameter_places,
    plan_for_gpu,
    workspace_places,
)
from intarsia.toolchain.native.gpu.gpu_program import GpuLaunch, GpuProgram
from intarsia.toolchain.native.gpu.item_program import ItemLaunch, ItemProgram
from intarsia.toolchain.native.region import Argument, ArgumentKind, NativeRegion


def compile_any(source: KernelSource, model: str) -> GpuProgram | ItemProgram:
    """Compile a source for a model of GPU: of static shapes, for a batch or texts of any size.

    Args:
        source: Source of a native kernel.
        model: LLVM's name of the model, such as "sm_80".

    Raises:
        CompileError: As `compile_program`, or other sizes are known at run time only.
    """
    tokens = token_source(source)
    if tokens is not None and tokens.source is not None:
        raise CompileError("kernels for GPUs attend to the tokens of one text, not to those of another one")
    if tokens is not None:
        return compile_tokens(source, tokens, model)
    batch = batch_source(source)
    return compile_program(source, model) if batch is None else compile_batch(batch, model)


def compile_batch(batch: BatchSource, model: str, make_image: ImageMaker | None = None) -> ItemProgram:
    """Compile a source with a batch of any size for a model of GPU.

    Args:
        batch: The source.
        model: LLVM's name of the model, such as "sm_80"; later GPUs run it too.
        make_image: Function that makes the code; that of `image_maker` if not given.

    Raises:
        CompileError: An operator has no kernel, or is none that computes each item by itself.
    """
    compiled = _compiled(batch.of_size(1), batch.kinds, None, (), None, model, make_image)
    program, region, _ = compiled.finished()
    return compiled.with_region(program, batch.region_of_any(region))


def compile_tokens(
    source: KernelSource, tokens: TokenSource, model: str, make_image: ImageMaker | None = None
) -> ItemProgram:
    """Compile a source on texts of any length for a model of GPU.

    Args:
        source: The source.
        tokens: Description of the source in a form whose tokens are items.
        model: LLVM's name of the model, such as "sm_80"; later GPUs run it too.
        make_image: Function that makes the code; that of `image_maker` if not given.

    Raises:
        CompileError: An operator has no kernel for any number of tokens.
    """
    compiled = _compiled(
        *(source, tokens.kinds, tokens.program_of_one, tokens.tables, tokens.result_kinds),
        *(model, make_image),
    )
    program, region, long_begin = compiled.finished()
    return compiled.with_region(program, tokens.region_of_any(region, long_begin))


def _compiled(
    source: KernelSource,
    kinds: Sequence[ItemKind | None],
    function: Function | None,
    tables: Sequence[Array],
    results: Sequence[ItemKind] | None,
    model: str,
    make_image: ImageMaker | None,
) -> _ItemKernels:
    """Return the kernels of a source; arguments are those of `build_item_region`."""
    planned = plan_for_gpu(source, in_place=False, program=function)
    items = item_plan(planned, kinds, len(tables), results)
    plan = items.plan
    values = dict(zip(plan.params[len(plan.params) - len(tables) :], tables, strict=True))
    build = RegionBuild(plan, planned.threads, {}, weights_by_memory(source.weights), values, items)
    kernels = _ItemKernels(build, items, planned.names, model, make_image)
    for kernel in plan.kernels:
        kernels.launches += kernels.launches_of(kernel)
    return kernels


@dataclass(eq=False)
class _ItemKernels:
    """The kernels so far.

    Attributes:
        build: Constants and buffers of the plan.
        items: The plan, and the numbers that each of its kernels reads.
        names: Names of the parameters.
        model: Model of GPU.
        make_image: Function that makes the code; that of `image_maker` if None.
        module: LLVM module of all kernels.
        emitted: Kernels of each computation.
        launches: Launches in order.
        workspace_bytes: Bytes of the kernels' own memory for each tile, as of `ItemProgram`.
    """

    build: RegionBuild
    items: ItemPlan
    names: Sequence[str]
    model: str
    make_image: ImageMaker | None
    module: ModuleText = field(default_factory=ModuleText)
    emitted: dict[ComputeDAG, _Emitted] = field(default_factory=dict)
    launches: list[ItemLaunch] = field(default_factory=list)
    workspace_bytes: dict[tuple[int, Tiling], int] = field(default_factory=dict)

    def finished(self) -> tuple[GpuProgram, NativeRegion, int]:
        """Return the program for one item, a region with its parameters and results, and where keys begin."""
        build, plan = self.build, self.items.plan
        copies = tuple((position, build.argument(root)) for position, root in plan.copied_results)
        launches = [launch for kernels in self.emitted.values() for launch in kernels.kernels.launches]
        image = image_of(self.module.text(), launches, self.model, self.make_image)
        passed = plan.params[: len(plan.params) - len(build.tables)]
        params = tuple(
            port_of(name, plan.values[value]) for name, value in zip(self.names, passed, strict=False)
        )
        results = tuple(port_of(f"result {at}", plan.values[value]) for at, value in enumerate(plan.results))
        program = GpuProgram(image, (), build.constants, params, results, copies, plan.arena_bytes)
        isa, arena_bytes = Isa("nvptx64", self.model, ()), plan.arena_bytes
        region = NativeRegion(isa, b"", 1, (), (), build.constants, params, results, copies, arena_bytes)
        return program, region, self.items.long_begin

    def with_region(self, program: GpuProgram, region: ItemRegion) -> ItemProgram:
        """Return the program for any number of items."""
        return ItemProgram(program, region, tuple(self.launches), self.workspace_bytes)

    def launches_of(self, kernel: KernelPlan) -> list[ItemLaunch]:
        """Return the launches of a kernel of the plan."""
        if kernel.dag not in self.emitted:
            self.emitted[kernel.dag] = self._emitted(kernel.dag)
        emitted, numbers = self.emitted[kernel.dag], self.items.numbers[kernel]
        places = parameter_places(self.build, kernel)
        places |= dict(
            zip(emitted.numbers, (Argument(ArgumentKind.CONSTANT, number) for number in numbers), strict=True)
        )
        counted = numbers[0] if emitted.counted is None else emitted.counted
        workspace, end = workspace_places(emitted.kernels, 0, emitted.per_tile)
        key = counted, emitted.tiling
        self.workspace_bytes[key] = max(end, self.workspace_bytes.get(key, 0))
        return [
            emitted.launch(launch, places, workspace, kernel, counted) for launch in emitted.kernels.launches
        ]

    def _emitted(self, dag: ComputeDAG) -> _Emitted:
        """Return the code of a computation."""
        stem, carrying = f"k{len(self.emitted)}", self.items.carrying[dag]
        attention, texts = token_attention_of(dag, carrying), text_loops_of(dag)
        filtered = token_filter_of(dag)
        if attention is None and texts is None and filtered is None:
            repeated = kernels_of_items(dag, carrying)
            kernels = emit_kernels(repeated.function, stem, self.model, self.module)
            number = repeated.function.params[-1].name
            return _Emitted(kernels, (number,), None, repeated.tiling, repeated.per_tile)
        if attention is not None:
            counted = token_attention_kernel(attention, self.model)
        elif filtered is not None:
            counted = token_filter_kernel(filtered)
        else:
            assert texts is not None, "it is one of them"
            counted = text_kernel(texts)
        arrays = len(dag.placeholders) + len(dag.outputs)
        numbers = tuple(buffer.name for buffer in counted.function.params[arrays:])
        kernels = emit_kernels(counted.function, stem, self.model, self.module)
        return _Emitted(kernels, numbers, counted.counted, Tiling())


@dataclass(frozen=True, slots=True)
class _Emitted:
    """The code of a computation.

    Attributes:
        kernels: Its kernels.
        numbers: Names of their parameters that are numbers of items.
        counted: Position of the number of items that their grids are a multiple of; that of the first number
            that they read if None.
        tiling: Division of the rows of items into tiles.
        per_tile: Names of the kernels' own buffers whose first axis is the tiles.
    """

    kernels: EmittedKernels
    numbers: tuple[str, ...]
    counted: int | None
    tiling: Tiling
    per_tile: frozenset[str] = frozenset()

    def launch(
        self,
        launch: Launch,
        places: Mapping[str, Argument],
        workspace: Mapping[str, Argument],
        kernel: KernelPlan,
        number: int,
    ) -> ItemLaunch:
        """Return a launch on the buffers at their places.

        Args:
            launch: One of the launches.
            places: Arguments by the name of the parameter.
            workspace: Arguments by the name of the kernels' own buffer.
            kernel: Kernel of the plan.
            number: Position of the number of items that its grid is a multiple of.
        """
        arguments = tuple(workspace[name] if name in workspace else places[name] for name in launch.arguments)
        blocks = launch.blocks // self.tiling.tiles(MOST_ITEMS) if launch.is_counted else launch.blocks
        first = (
            launch.name,
            blocks,
            launch.threads,
            arguments,
            kernel.name,
            kernel.nodes,
            kernel.is_conversion,
        )
        return ItemLaunch(
            GpuLaunch(*first, shared_bytes=launch.dynamic_bytes),
            number,
            self.tiling,
            launch.is_counted,
            tuple(name in workspace for name in launch.arguments),
        )
