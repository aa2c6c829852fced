"""The kernels of a program on images of any size: tiles, moves, and where images are in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from intarsia.native.execution.size_table import (
    BEGIN,
    COUNT,
    LAST,
    REST,
    Linear,
    Polynomial,
    added,
    constant,
    product,
)
from intarsia.native.graph.blocked_dag import blocked_dag
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.convolution_algorithm import (
    ConvolutionAlgorithm,
    ConvolutionAlgorithms,
    algorithm_names,
)
from intarsia.native.graph.fusion_groups import fusion_groups
from intarsia.native.graph.group_form import GroupForm
from intarsia.native.graph.kernel_dag import KernelDag, Source, SourceForm
from intarsia.native.graph.straight_line import StraightLine
from intarsia.native.sizes.image_loops import ImageAccess
from intarsia.native.sizes.image_writer import ImageMove, Move
from intarsia.toolchain.native.images.grid_form import GridForms
from intarsia.toolchain.native.images.image_memory import (
    BYTES,
    Given,
    ImageMemory,
    Layout,
    Place,
    PlannedCall,
    TileKernel,
    shifted,
)
from intarsia.toolchain.native.images.image_program import (
    NO_PIXELS,
    ONE_PIXEL,
    Image,
    ImageProgram,
    Level,
    MixedImagesError,
)
from intarsia.toolchain.native.images.tile_program import TileProgram, TileRead, tile_program
from intarsia.toolchain.native.images.tile_variant import (
    PIXELS,
    POINTWISE_PIXELS,
    POINTWISE_WIDTHS,
    WIDTHS,
    TileGroup,
    TileVariant,
)

_DIRECT: Final = ConvolutionAlgorithms(ConvolutionAlgorithm.DIRECT)


@dataclass(frozen=True, slots=True, eq=False)
class ImagePlan:
    """The calls of a program.

    Attributes:
        calls: Calls in order.
        storages: Size of each storage in bytes.
        head: Place of each parameter of the head.
    """

    calls: tuple[PlannedCall, ...]
    storages: tuple[Polynomial, ...]
    head: tuple[Place, ...]


def image_plan(
    program: ImageProgram, lanes: int, grids: GridForms, copies: Sequence[tuple[int, int]] = ()
) -> ImagePlan:
    """Return the calls of a program.

    Args:
        program: The program.
        lanes: Number of channels of a block.
        grids: Rule for convolutions in grids of tiles.
        copies: Pairs of a result of the head and the parameter of the head that it is.

    Raises:
        MixedImagesError: An image needs a kernel that there is not.
        CompileError: An operator has no native kernel.
    """
    return _Planner(program, lanes, grids).planned(copies)


def _line(tile: TileProgram) -> StraightLine:
    """Return the steps of the program for a tile, which may have none."""
    return StraightLine.of(tile.function) if tile.images else StraightLine()


@dataclass(eq=False)
class _Planner:
    program: ImageProgram
    lanes: int
    grids: GridForms

    def __post_init__(self) -> None:
        self._tiles: dict[tuple[int, int, bool], tuple[TileProgram, StraightLine]] = {}
        self.memory = ImageMemory(self.program.count, self.lanes)

    def planned(self, copies: Sequence[tuple[int, int]]) -> ImagePlan:
        """Return the plan; results that are parameters of the head are copied."""
        groups = self._groups()
        for image in self.program.images:
            if image.number in groups:
                self._add_tiles(groups[image.number])
            elif image.move is not None:
                self._add_move(image, image.move)
        for position, result in enumerate(self.program.results):
            if result is not None:
                self._add_result(result, len(self._param_images) + position)
        params = self.program.head_params
        head = tuple(self._add_plain(param.image) for param in params)
        of_head = [at for at, result in enumerate(self.program.results) if result is None]
        for position, number in copies:
            self._add_result(params[number].image, len(self._param_images) + of_head[position])
        return ImagePlan(tuple(self.memory.calls), tuple(self.memory.storages), head)

    @property
    def _param_images(self) -> list[Image]:
        return [image for image in self.program.images if image.param is not None]

    # Kernels for tiles

    def _tile(
        self, height: int, width: int, *, windows_apart: bool = False
    ) -> tuple[TileProgram, StraightLine]:
        """Return the program for a tile, and its steps, which are those of all tiles in order."""
        shape = height, width, windows_apart
        if shape not in self._tiles:
            tile = tile_program(self.program, height, width, windows_apart=windows_apart)
            self._tiles[shape] = tile, _line(tile)
        return self._tiles[shape]

    def _groups(self) -> dict[int, TileGroup]:
        """Return the groups by the image that they write; note the orders of channels of all images."""
        tile_program(self.program, 1, WIDTHS[0])  # some images turn out to be stored when others read them
        tile, widest = self._tile(1, WIDTHS[0])
        positions = {step: position for position, step in enumerate(widest.steps)}
        members: dict[int, list[int]] = {}
        for steps in fusion_groups(widest):
            image = tile.images[steps[-1].call]
            members[image.number] = [positions[step] for step in steps]
        groups = {}
        for image in self.program.images:
            if image.number in members:
                groups[image.number] = self._group(image, members[image.number])
            elif image.parts:
                self.memory.orders[image.number] = ChannelOrder.joined(
                    self.memory.orders[part.number] for part in image.parts
                )
            elif image.call is None and not image.is_plain:
                self.memory.orders[image.number] = self._order_of_moved(image)
        return groups

    def _order_of_moved(self, image: Image) -> ChannelOrder:
        source = image.source
        if source is not None and source.number in self.memory.orders:
            return self.memory.orders[source.number]
        phase = next((item for item in self.program.images if item.phase and item.phase.whole is image), None)
        return (
            ChannelOrder.natural(image.channels, self.lanes)
            if phase is None
            else self.memory.orders[phase.number]
        )

    def _group(self, image: Image, members: Sequence[int]) -> TileGroup:
        line = self._tile(1, WIDTHS[0])[1]
        steps = [line.steps[position] for position in members]
        if image.level == ONE_PIXEL:
            return TileGroup(image, self._variant(image, members, 0, (1,), _DIRECT), None, steps)
        form = self.grids.form(steps)
        if form is None:
            main = self._variant(image, members, 0, WIDTHS, _DIRECT)
            if main.is_pointwise:
                main = replace(main, dags={width: main.dags[width] for width in POINTWISE_WIDTHS})
        else:
            algorithms = ConvolutionAlgorithms(form.algorithm)
            main = self._variant(image, members, form.tile, form.counts, algorithms, form.extra)
        counts = POINTWISE_PIXELS if main.is_pointwise else PIXELS
        return TileGroup(image, main, self._variant(image, members, 1, counts, _DIRECT), steps)

    def _variant(
        self,
        image: Image,
        members: Sequence[int],
        tile: int,
        widths: Sequence[int],
        algorithms: ConvolutionAlgorithms,
        extra: int = 0,
    ) -> TileVariant:
        """Return the code for tiles, and note the order of the image's channels.

        Args:
            image: The image that is computed.
            members: Positions of the steps.
            tile: Rows and columns of a tile of a grid, 1 for pixels; 0 for a row.
            widths: Numbers of columns, or of tiles.
            algorithms: Algorithms of convolutions.
            extra: Cost of some tiles of a grid beside the tiles, in tiles.

        Raises:
            MixedImagesError: There is none.
        """
        dags: dict[int, KernelDag] = {}
        reads: dict[int, TileRead] = {}
        for width in widths:
            program, line = self._tile(max(1, tile), width * max(1, tile), windows_apart=tile == 1)
            steps = [line.steps[position] for position in members]
            values = list(line.values)
            reads = dict(zip(line.params, program.reads, strict=True))
            for step in line.steps:
                if step.call in program.images and step not in steps:
                    read = program.images[step.call]
                    moves = int(read.level != ONE_PIXEL or image.level == ONE_PIXEL)
                    reads[step.outputs[0]] = TileRead(read, moves, moves)
            for number, item in reads.items():
                order = self.memory.orders.get(item.image.number)
                values[number] = replace(values[number], order=order)
            blocked = blocked_dag(steps, values, self.lanes, algorithms, GroupForm.MERGED.value, always=True)
            if blocked is None:
                raise MixedImagesError(f"{steps[-1].op.name} has no kernel for images of any size")
            dags[width], self.memory.orders[image.number] = blocked.kernel, blocked.order
            self._check_sources(blocked.kernel.sources, reads)
        return TileVariant(tile, dags, reads, extra)

    def _check_sources(self, sources: Sequence[Source], given: Mapping[int, TileRead]) -> None:
        """Refuse a kernel that would read an image in another layout than it has.

        Raises:
            MixedImagesError: It would.
        """
        for source in sources:
            read = given.get(source.number)
            if source.array is not None or read is None:
                continue
            order = self.memory.orders.get(read.image.number)
            is_same = source.form is SourceForm.BLOCKED and source.order == order and order is not None
            if not is_same and not (source.form is SourceForm.PLAIN and order is None):
                raise MixedImagesError("channels are read in another order than they are written")

    def _add_tiles(self, group: TileGroup) -> None:
        level, main, table = group.image.level, group.main, self.program.table
        counts, image = tuple(main.dags), (main.tile, group.least_columns)
        if main.tile:
            chunks = partial(table.grid, level, main.tile, (counts, main.extra))
            self._add_variant(group, main, self._grid_numbers(level, main, chunks))
        else:
            rows = product(level[0])
            if group.pixels is not None:
                rows = table.pixels(level, image, tuple(group.pixels.dags), 0, REST)
            tiles = (
                table.tiles(level[1], counts, at, part)
                for at in range(len(counts))
                for part in (COUNT, BEGIN, LAST)
            )
            self._add_variant(group, main, [rows, *tiles])
        if group.pixels is not None:
            chunks = partial(table.pixels, level, image, tuple(group.pixels.dags))
            self._add_variant(group, group.pixels, self._grid_numbers(level, group.pixels, chunks))

    def _grid_numbers(
        self, level: Level, grid: TileVariant, chunks: Callable[[int, int], Polynomial]
    ) -> list[Polynomial]:
        """Return the numbers of tiles that code for a grid is given."""
        tile = grid.tile
        across = self.program.table.quotient(added(level[1], constant(tile - 1)), tile)
        numbers = [
            product(across),
            chunks(0, LAST),
            *(product(added(extent, constant(-tile))) for extent in level),
        ]
        for at in range(len(grid.dags)):
            numbers += (chunks(at, part) for part in (COUNT, BEGIN))
        return numbers

    def _add_variant(self, group: TileGroup, variant: TileVariant, tiles: Sequence[Polynomial]) -> None:
        """Add the call of a kernel for tiles.

        Args:
            group: The group that it computes.
            variant: Its code.
            tiles: Numbers of tiles and where they begin, as the kernel is given them.
        """
        target = self.memory.target(group.image)
        whole = next(iter(variant.dags.values()))
        accesses: dict[str, ImageAccess] = {}
        arrays: dict[str, Given] = {}
        strides: dict[str, tuple[Polynomial, ...]] = {}

        gathered = variant.multiplied if variant.tile == 1 else frozenset()

        def add(name: str, layout: Layout, rows: int, columns: int, begins: Level) -> None:
            is_gathered = name in gathered
            accesses[name] = ImageAccess(layout.lanes, rows, columns, layout.step, is_gathered)
            arrays[name] = shifted(layout, begins)
            strides[name] = layout.pitch, layout.plane, layout.image

        for tensor, source in zip(whole.dag.placeholders, whole.sources, strict=True):
            name = tensor.op.name
            if source.array is not None:
                arrays[name] = source.array
                continue
            read = variant.reads.get(source.number)
            if read is None:
                raise MixedImagesError("a kernel reads what is no image")
            add(name, self.memory.layout(read.image), read.rows, read.columns, read.begins)
        (output,) = whole.dag.outputs
        add(output.buffer.name, target, target.step, target.step, NO_PIXELS)
        numbers = [product(self.program.count), *tiles]
        dags = {width: item.dag for width, item in variant.dags.items()}
        kernel = TileKernel(dags, accesses, variant.tile)
        names = [*(step.op.name.lower() for step in group.steps), *algorithm_names(whole.dag)]
        nodes = tuple(
            dict.fromkeys(step.call.span.node for step in group.steps if step.call.span is not None)
        )
        self.memory.calls.append(PlannedCall(kernel, arrays, tuple(numbers), strides, "_".join(names), nodes))

    # Moves

    def _add_move(self, image: Image, form: ImageMove) -> None:
        source = image.source
        assert source is not None, "it is moved from there"
        order = self.memory.orders.get(source.number)
        if order is not None:  # joined images have more blocks than their channels need
            form = replace(form, channels=order.blocks * self.lanes)
        target = self.memory.target(image)
        self._moved(form, self.memory.layout(source), source.level, target, image.level, form.move.value)

    def _moved(
        self,
        form: ImageMove,
        source: Layout,
        level: tuple[Linear, Linear],
        target: Layout,
        after: tuple[Linear, Linear],
        name: str,
    ) -> None:
        numbers = (
            product(self.program.count),
            *(product(extent) for extent in level),
            *(source.pitch, source.plane, source.image),
            *(target.pitch, target.plane, target.image),
            *(product(extent) for extent in after),
        )
        arrays = {"x": shifted(source, NO_PIXELS), "y": shifted(target, NO_PIXELS)}
        self.memory.calls.append(PlannedCall(form, arrays, numbers, {}, f"images: {name}"))

    def _add_result(self, image: Image, slot: int) -> None:
        """Add the copy of an image to the caller's memory."""
        self._copy_out(image, self.memory.plain_layout(image, Place(slot)), "result")

    def _add_plain(self, image: Image) -> Place:
        """Add the copy of an image of one pixel for the head, and return where it is."""
        channels = constant(image.channels)
        self.memory.storages.append(product(self.program.count, channels, constant(BYTES)))
        copied = Place(None, len(self.memory.storages) - 1)
        self._copy_out(image, self.memory.plain_layout(image, copied), "head")
        return copied

    def _copy_out(self, image: Image, target: Layout, name: str) -> None:
        order = self.memory.orders[image.number]
        form = ImageMove(Move.FROM_BLOCKS, self.lanes, image.channels, order.place_of)
        self._moved(form, self.memory.layout(image), image.level, target, image.level, name)
