"""Programs of GPU kernels for any number of items, and the program that they are for one number.

Code and constants are the same for all numbers. Offsets in the arena, grids, and sizes of parameters and
results are proportional to the number of items, or to that of tiles of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from intarsia.native.dag import ComputeDAG
from intarsia.native.emission.builder import ModuleText
from intarsia.native.execution.item_kind import NUMBER_OF, ItemKind
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.gpu.emit_kernels import EmittedKernels, Launch, emit_kernels
from intarsia.native.gpu.kernel_list import MOST_BLOCKS
from intarsia.native.gpu.kernels_of_items import KernelsOfItems, Tiling, kernels_of_items
from intarsia.native.graph import KernelPlan
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.toolchain.native.batches.batch_source import BatchSource, batch_source
from intarsia.toolchain.native.batches.item_plan import item_plan
from intarsia.toolchain.native.build import RegionBuild, port_of, weights_by_memory
from intarsia.toolchain.native.gpu.compile_program import (
    ALIGNMENT,
    ImageMaker,
    compile_program,
    image_of,
    parameter_places,
    plan_for_gpu,
    workspace_places,
)
from intarsia.toolchain.native.gpu.gpu_program import GpuLaunch, GpuProgram
from intarsia.toolchain.native.region import Argument, ArgumentKind, RegionPort

_NUMBER: Final = Argument(ArgumentKind.CONSTANT, 0)
"""Where the number of items is: the first constant."""


@dataclass(frozen=True, slots=True)
class ItemLaunch:
    """A launch whose grid depends on the number of items.

    Attributes:
        launch: The launch for one tile of rows; offsets of its workspace are in bytes for each tile.
        tiling: Division of the rows of items into tiles.
        is_counted: Whether each tile has blocks of its own; else the grid is the same for all numbers.
        workspace: For each of its arguments whether it is a buffer of the kernels' own.
    """

    launch: GpuLaunch
    tiling: Tiling
    is_counted: bool
    workspace: tuple[bool, ...]

    def of_items(self, items: int, workspace: int) -> GpuLaunch:
        """Return the launch for a number of items.

        Args:
            items: Number of items.
            workspace: Offset in the arena of the kernels' own buffers.

        Raises:
            ExecutionError: A grid has too many blocks.
        """
        tiles = self.tiling.tiles(items)
        blocks = self.launch.blocks * (tiles if self.is_counted else 1)
        if blocks > MOST_BLOCKS:
            raise ExecutionError(f"{items} items need {blocks} blocks; expected at most {MOST_BLOCKS}")
        arguments = []
        for argument, is_workspace in zip(self.launch.arguments, self.workspace, strict=True):
            at = argument.number
            if argument.kind is ArgumentKind.ARENA:
                at = workspace + at * tiles if is_workspace else at * items
            arguments.append(Argument(argument.kind, at))
        return replace(self.launch, blocks=blocks, arguments=tuple(arguments))


@dataclass(frozen=True, eq=False)
class ItemProgram:
    """Kernels of a source for any number of items.

    Attributes:
        of_one: The program for one item, but for its launches and without the kernels' own memory; its first
            constant is the number of items.
        launches: Launches in order.
        carrying: For each parameter whether it has items, which are its first axis.
        workspace_bytes: Bytes of the kernels' own memory for each tile, by division of rows into tiles.
    """

    of_one: GpuProgram
    launches: tuple[ItemLaunch, ...]
    carrying: tuple[bool, ...]
    workspace_bytes: Mapping[Tiling, int]

    def count_items(self, shapes: Sequence[tuple[int, ...]]) -> int:
        """Return the number of items that parameters of given shapes have.

        Raises:
            ExecutionError: Two of them have different numbers, or there are too many.
        """
        given = {
            shape[0] // port.shape[0] if shape and shape[0] % port.shape[0] == 0 else -1
            for shape, port, carries in zip(shapes, self.of_one.params, self.carrying, strict=True)
            if carries
        }
        if len(given) != 1 or -1 in given:
            raise ExecutionError(f"the parameters have batches of {sorted(given)} items, expected one size")
        (items,) = given
        if items > MOST_ITEMS:
            raise ExecutionError(f"native runs up to {MOST_ITEMS} items here, found {items}")
        return items

    def of_items(self, items: int) -> GpuProgram:
        """Return the program for a number of items.

        Raises:
            ExecutionError: A grid has too many blocks.
        """
        program = self.of_one
        short = -(-program.arena_bytes * items // ALIGNMENT) * ALIGNMENT
        workspace = max(
            (size * tiling.tiles(items) for tiling, size in self.workspace_bytes.items()), default=0
        )
        copies = tuple(
            (
                at,
                replace(origin, number=origin.number * items)
                if origin.kind is ArgumentKind.ARENA
                else origin,
            )
            for at, origin in program.copies
        )
        number = replace(program.constants[0], array=np.full((), items, np.int64))
        return replace(
            program,
            launches=tuple(launch.of_items(items, short) for launch in self.launches) if items else (),
            constants=(number, *program.constants[1:]),
            params=tuple(
                _port(port, items) if carries else port
                for port, carries in zip(program.params, self.carrying, strict=True)
            ),
            results=tuple(_port(port, items) for port in program.results),
            copies=copies,
            arena_bytes=short + workspace,
        )


def _port(port: RegionPort, items: int) -> RegionPort:
    return replace(port, shape=(items * port.shape[0], *port.shape[1:]))


def compile_any(source: KernelSource, model: str) -> GpuProgram | ItemProgram:
    """Compile a source for a model of GPU: of static shapes, or for a batch of any size.

    Args:
        source: Source of a native kernel.
        model: LLVM's name of the model, such as "sm_80".

    Raises:
        CompileError: As `compile_program`, or sizes other than that of a batch are known at run time only.
    """
    batch = batch_source(source)
    return compile_program(source, model) if batch is None else compile_items(batch, model)


def compile_items(batch: BatchSource, model: str, make_image: ImageMaker | None = None) -> ItemProgram:
    """Compile a source with a batch of any size for a model of GPU.

    Args:
        batch: The source.
        model: LLVM's name of the model, such as "sm_80"; later GPUs run it too.
        make_image: Function that makes the code; that of `image_maker` if not given.

    Raises:
        CompileError: An operator has no kernel, or is none that computes each item by itself.
    """
    source = batch.of_size(1)
    planned = plan_for_gpu(source, in_place=False)
    items = item_plan(planned, batch.kinds)
    plan = items.plan
    build = RegionBuild(plan, planned.threads, {}, weights_by_memory(source.weights))
    number = np.ones((), np.int64)
    assert build.constant(number, None) == _NUMBER, "there is no constant before"
    program = _ItemKernels(build, model, items.carrying)
    launches = []
    for kernel in plan.kernels:
        if items.numbers[kernel] != (NUMBER_OF[ItemKind.TOKENS],):
            raise CompileError(f"no GPU code for {kernel.name} of any number of items")
        launches += program.launches_of(kernel)
    copies = tuple((position, build.argument(root)) for position, root in plan.copied_results)
    emitted = [launch for _, kernels in program.emitted.values() for launch in kernels.launches]
    image = image_of(program.module.text(), emitted, model, make_image)
    program_of_one = GpuProgram(
        image,
        tuple(launch.launch for launch in launches),
        build.constants,
        tuple(
            port_of(name, plan.values[value]) for name, value in zip(planned.names, plan.params, strict=True)
        ),
        tuple(port_of(f"result {at}", plan.values[value]) for at, value in enumerate(plan.results)),
        copies,
        plan.arena_bytes,
    )
    return ItemProgram(program_of_one, tuple(launches), batch.carrying, program.workspace_bytes)


@dataclass(eq=False)
class _ItemKernels:
    """The kernels so far.

    Attributes:
        build: Constants and buffers of the plan.
        model: Model of GPU.
        carrying: Names of the placeholders of each computation that have items.
        module: LLVM module of all kernels.
        emitted: Kernels of each computation.
        workspace_bytes: Bytes of the kernels' own memory for each tile, as of `ItemProgram`.
    """

    build: RegionBuild
    model: str
    carrying: Mapping[ComputeDAG, frozenset[str]]
    module: ModuleText = field(default_factory=ModuleText)
    emitted: dict[ComputeDAG, tuple[KernelsOfItems, EmittedKernels]] = field(default_factory=dict)
    workspace_bytes: dict[Tiling, int] = field(default_factory=dict)

    def launches_of(self, kernel: KernelPlan) -> list[ItemLaunch]:
        """Return the launches of a kernel of the plan."""
        pair = self.emitted.get(kernel.dag)
        if pair is None:
            repeated = kernels_of_items(kernel.dag, self.carrying[kernel.dag])
            stem = f"k{len(self.emitted)}"
            pair = repeated, emit_kernels(repeated.function, stem, self.model, self.module)
            self.emitted[kernel.dag] = pair
        repeated, emitted = pair
        places = parameter_places(self.build, kernel) | {repeated.function.params[-1].name: _NUMBER}
        tiling = repeated.tiling
        workspace, end = workspace_places(emitted, 0, repeated.per_tile)
        self.workspace_bytes[tiling] = max(end, self.workspace_bytes.get(tiling, 0))
        return [_item_launch(launch, places, workspace, tiling, kernel) for launch in emitted.launches]


def _item_launch(
    launch: Launch,
    places: Mapping[str, Argument],
    workspace: Mapping[str, Argument],
    tiling: Tiling,
    kernel: KernelPlan,
) -> ItemLaunch:
    """Return a launch on the buffers at their places."""
    arguments = tuple(workspace[name] if name in workspace else places[name] for name in launch.arguments)
    blocks = launch.blocks // tiling.tiles(MOST_ITEMS) if launch.is_counted else launch.blocks
    return ItemLaunch(
        GpuLaunch(
            *(
                launch.name,
                blocks,
                launch.threads,
                arguments,
                kernel.name,
                kernel.nodes,
                kernel.is_conversion,
            ),
            shared_bytes=launch.dynamic_bytes,
        ),
        tiling,
        launch.is_counted,
        tuple(name in workspace for name in launch.arguments),
    )
