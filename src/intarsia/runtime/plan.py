"""The executable form of a program: blocks of steps over numbered slots, as plain data.

    PlanBlock  params -> steps -> results             a function; slots are local to one activation of it
    Step = RunKernel | Copy | Branch | Invoke | Repeat

Tuples are gone (each field has a slot), lets are slots, closures are lifted, sharing is by slot. A program
without Branch, Invoke and Repeat is straight-line: it runs from preallocated buffers (runtime.executable).

A plan for several devices lists them, and has the device of every slot. A kernel reads and writes slots of
its
own device; only a Copy reads from another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from intarsia.ir.cache import Cache
from intarsia.ir.dim_range import DimRange
from intarsia.runtime.stream_choice import StreamChoice


@dataclass(frozen=True, slots=True)
class RunKernel:
    """Run one kernel on a device of the plan: read the input slots, write the output slots."""

    kernel: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    device: int = 0


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy the value of a slot into a slot on another device, which runs the copy."""

    source: int
    destination: int
    device: int

    @property
    def inputs(self) -> tuple[int, ...]:
        """The slot that is read."""
        return (self.source,)

    @property
    def outputs(self) -> tuple[int, ...]:
        """The slot that is written."""
        return (self.destination,)


@dataclass(frozen=True, slots=True)
class Branch:
    """Run one of two step lists in the same activation; each has the slots of its results."""

    cond: int
    true_steps: tuple[Step, ...]
    true_results: tuple[int, ...]
    false_steps: tuple[Step, ...]
    false_results: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Invoke:
    """Call a block of the plan (recursion included)."""

    block: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Call a block again and again, as ONNX's Loop and Scan do.

    The block takes the number of the iteration and the condition (a Loop only), the states, a slice of each
    scanned value, and the captured values. It returns the condition (a Loop only), the states, and a row for
    each stack.

    Attributes:
        block: Name of the body.
        trips: Slot of the trip count of a Loop; empty where there is none, and for a Scan.
        condition: Slot of the condition of a Loop; empty for a Scan.
        states: Slots of the states before the first iteration.
        scanned: Slots of the values that a Scan slices; empty for a Loop.
        captured: Slots of the loop-invariant values.
        scan_axes: For each scanned value, the axis of the slices and whether they are taken from its end.
        row_axes: For each stack, the axis along which rows are stacked and whether they begin at its end.
        empty: For each stack, the slot of its value where there is no row.
        outputs: Slots of the states after the last iteration, then of the stacks.
    """

    block: str
    trips: tuple[int, ...]
    condition: tuple[int, ...]
    states: tuple[int, ...]
    scanned: tuple[int, ...]
    captured: tuple[int, ...]
    scan_axes: tuple[tuple[int, bool], ...]
    row_axes: tuple[tuple[int, bool], ...]
    empty: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def inputs(self) -> tuple[int, ...]:
        """All slots that are read."""
        return (*self.trips, *self.condition, *self.states, *self.scanned, *self.captured, *self.empty)

    @property
    def is_loop(self) -> bool:
        """Whether it is a Loop, not a Scan."""
        return bool(self.condition)

    @property
    def body_params(self) -> int:
        """Number of values that the body takes."""
        return 2 * self.is_loop + len(self.states) + len(self.scanned) + len(self.captured)

    @property
    def body_results(self) -> int:
        """Number of values that the body returns."""
        return self.is_loop + len(self.states) + len(self.row_axes)


Step: TypeAlias = RunKernel | Copy | Branch | Invoke | Repeat


@dataclass(frozen=True, slots=True)
class PlanBlock:
    """One function of the plan.

    Attributes:
        params: Slots of the parameters.
        constants: (slot, constant number) of constants that steps read directly.
        steps: Steps in order of execution.
        results: Slots of the returned values; a slot may occur twice or be a parameter.
        slots: Number of slots of one activation.
        slot_devices: The number of each slot's device; empty in a plan without devices.
    """

    params: tuple[int, ...]
    constants: tuple[tuple[int, int], ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    slots: int
    slot_devices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Name and type of an input, output or slot.

    Attributes:
        name: Name for messages and for calling by name.
        dtype: Element type of a tensor; for a sequence or optional, the text of its whole type.
        shape: Extents, -1 or a symbol for an unknown one; None for an unknown rank and for non-tensors.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None


@dataclass(frozen=True, slots=True)
class PlanVariant:
    """A block that is run in place of "main" where symbolic dimensions have certain sizes.

    Attributes:
        sizes: Size of each dimension, by name; all variants of a plan have the same names.
        block: Name of the block.
        slot_types: Types of its slots, for preallocation; None for non-tensors.
    """

    sizes: Mapping[str, int]
    block: str
    slot_types: tuple[TensorInfo | None, ...]


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """A whole program: its blocks, inputs and outputs, and the types of its slots.

    Attributes:
        blocks: Blocks by name; execution starts at "main".
        inputs: Names and types of the inputs, in order.
        outputs: Names and types of the outputs, in order.
        output_structure: Nesting of the returned outputs: an index into `outputs`, or a tuple of structures.
        slot_types: Types of the slots of "main", for preallocation; None for non-tensors.
        devices: Names of the devices ("cpu:0", "mock:1") by number; empty where the caller's thread runs all
            steps on all cores.
        dim_ranges: Sizes that symbolic dimensions of the inputs may have, by name; any size where there is
            none.
        variants: Blocks that are run in place of "main" at some sizes.
        cache: States that a sequence of tokens keeps between calls, for the step of a decoder.
        streams: Streams, threads and batch of a pool that were measured as the best.
    """

    blocks: dict[str, PlanBlock]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    output_structure: Structure
    slot_types: tuple[TensorInfo | None, ...]
    devices: tuple[str, ...] = ()
    dim_ranges: Mapping[str, DimRange] = field(default_factory=dict)
    variants: tuple[PlanVariant, ...] = ()
    cache: Cache | None = None
    streams: StreamChoice | None = None


Structure: TypeAlias = "int | tuple[Structure, ...]"
