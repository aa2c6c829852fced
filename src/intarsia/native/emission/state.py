"""Where the emission of one function stands."""

from __future__ import annotations

from dataclasses import dataclass, field

from intarsia.ir.dtype import DType
from intarsia.native.emission.affine_index import AffineIndex
from intarsia.native.emission.builder import Builder, ModuleText
from intarsia.native.emission.facts import Facts
from intarsia.native.emission.loop_frame import LoopFrame
from intarsia.native.emission.loops import Symbols
from intarsia.native.emission.prefetch import Prefetch
from intarsia.native.emission.registers import RegisterFile
from intarsia.native.emission.types import Value
from intarsia.native.machine.isa import Isa


@dataclass(slots=True)
class MemoryPlace:
    """A buffer in memory.

    Attributes:
        name: Its name.
        base: Its address.
        dtype: Its element type.
        shape: Its extents.
        align: Bytes that its address is a multiple of.
        private_lanes: Each lane of the vectorised loop around it has its own elements, side by side: so many
            lanes; else 0.
        is_padded: A vector from its last element on stays inside its memory.
        is_streamed: Its vectors are read one after another, and come from far away.
    """

    name: str
    base: str
    dtype: DType
    shape: tuple[int, ...]
    align: int
    private_lanes: int = 0
    is_padded: bool = False
    is_streamed: bool = False


@dataclass(frozen=True, slots=True)
class AccessSite:
    """One check of one index in bounds-checked code.

    Attributes:
        buffer: Name of the buffer.
        dimension: Which index.
        extent: What it must be below.
        is_store: Whether the access writes.
    """

    buffer: str
    dimension: int
    extent: int
    is_store: bool


@dataclass(slots=True)
class KernelState:
    """What the functions of one kernel share.

    Attributes:
        name: The kernel's name.
        isa: What code is emitted for.
        facts: What is known about the loop function.
        module: The text of the module.
        prefetches: What iterations of loops ask for, by the loops' identities.
        scratch_bytes: Most scratch that any thread needs, so far.
        sites: Checks of indices so far.
        bounds_checked: Whether indices are checked.
    """

    name: str
    isa: Isa
    facts: Facts
    module: ModuleText
    contract: str
    bounds_checked: bool = False
    prefetches: dict[int, tuple[Prefetch, ...]] = field(default_factory=dict)
    scratch_bytes: int = 0
    bodies: int = 0
    has_f16c: bool = field(init=False)
    vector_bytes: int = field(init=False)
    sites: list[AccessSite] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.has_f16c, self.vector_bytes = self.isa.has_f16c, self.isa.vector_bytes


@dataclass(slots=True)
class FunctionState:
    """One LLVM function while it is written.

    Attributes:
        kernel: What it shares with the others.
        builder: Its text.
        symbols: Its numbers and pointers.
        registers: Buffers in SSA values.
        memory: Buffers in memory by name.
        env: The loop variables.
        lanes: Lanes of the vectorised loop around; 0 outside of one.
        lane_var: The variable of that loop.
        mask: Which lanes run; None if all do.
        versions: How often each buffer has been written, so that loads are not repeated.
        scratch_top: Scratch that is in use here.
        root: The function as a frame.
        runtime: The runtime's record; None in bodies of parallel loops, where nothing runs in parallel.
        scratch: Address of this thread's scratch.
    """

    kernel: KernelState
    builder: Builder
    symbols: Symbols
    registers: RegisterFile
    root: LoopFrame
    scratch: str
    runtime: str | None
    scratch_top: int = 0
    stack_bytes: int = 0
    memory: dict[str, MemoryPlace] = field(default_factory=dict)
    env: dict[str, AffineIndex] = field(default_factory=dict)
    lanes: int = 0
    lane_var: str | None = None
    mask: Value | None = None
    versions: dict[str, int] = field(default_factory=dict)
    allocas: dict[tuple[int, int], str] = field(default_factory=dict)
    literals: dict[int, Value | AffineIndex] = field(default_factory=dict)
