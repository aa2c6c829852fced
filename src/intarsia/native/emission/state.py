"""State of the emission of one function."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

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

_MASKED: Final = frozenset({"avx2", "avx512vl"})
"""Features of machines whose loads and stores of 4-byte elements take masks."""


@dataclass(slots=True)
class MemoryPlace:
    """A buffer in memory.

    Attributes:
        name: Name of the buffer.
        base: Address of the buffer.
        dtype: Element type.
        shape: Extents.
        align: Alignment of the address in bytes.
        private_lanes: Number of lanes if each lane of the enclosing vectorised loop has private elements,
            side by side; else 0.
        is_padded: Whether a vector that starts at the last element stays inside the memory.
        is_streamed: Whether its vectors are prefetched.
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
        dimension: Number of the index.
        extent: Upper bound of the index, exclusive.
        is_store: Whether the access writes.
    """

    buffer: str
    dimension: int
    extent: int
    is_store: bool


@dataclass(slots=True)
class KernelState:
    """State that the functions of one kernel share.

    Attributes:
        name: Name of the kernel.
        isa: Instruction set to emit for.
        facts: Facts on the loop function.
        module: Text of the module.
        prefetches: Prefetches of loops, by the loops' identities.
        scratch_bytes: Maximum scratch memory of a thread so far, in bytes.
        sites: Checks of indices so far.
        bounds_checked: Whether indices are checked.
        has_masks: Whether loads and stores of 4-byte elements take a mask.
        noted_lanes: Indices in each lane, by what decides about them; `lane_pattern` reads and writes it.
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
    has_masks: bool = field(init=False)
    sites: list[AccessSite] = field(default_factory=list)
    noted_lanes: dict[Hashable, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.has_f16c, self.vector_bytes = self.isa.has_f16c, self.isa.vector_bytes
        self.has_masks = not _MASKED.isdisjoint(self.isa.features)


@dataclass(slots=True)
class FunctionState:
    """State of one LLVM function during emission.

    Attributes:
        kernel: State that it shares with the other functions.
        builder: Builder of its text.
        symbols: Numbers and pointers of the function.
        registers: Buffers in SSA values.
        memory: Buffers in memory by name.
        env: Values of the loop variables.
        lanes: Number of lanes of the enclosing vectorised loop; 0 outside of one.
        lane_var: Variable of that loop.
        mask: Mask of the active lanes; None if all are active.
        versions: Number of writes of each buffer so far, so that loads can be reused.
        unrolled: Extents of the unrolled loops around this point, by variable, all of whose iterations run
            whenever one does, with nothing in between.
        scratch_top: Scratch memory in use at this point, in bytes.
        root: Frame of the function.
        runtime: Address of the runtime record; None in bodies of parallel loops, whose nested loops are
            serial.
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
    unrolled: dict[str, int] = field(default_factory=dict)
    allocas: dict[tuple[int, int], str] = field(default_factory=dict)
    literals: dict[int, Value | AffineIndex] = field(default_factory=dict)
