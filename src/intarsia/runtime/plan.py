"""The executable form of a program: blocks of steps over numbered slots, as plain data.

    Block   params -> steps -> results             a function; slots are local to one activation of it
    Step = RunKernel | Copy | Branch | Invoke

Tuples are gone (each field has a slot), lets are slots, closures are lifted, sharing is by slot. A program
without Branch and Invoke is straight-line: it runs from preallocated buffers (runtime.executable).

A plan for several devices lists them, and says of every slot on which one it lies. A kernel reads and writes
slots of its own device; only a Copy joins two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class RunKernel:
    """Run one kernel on a device of the plan: read the input slots, write the output slots."""

    kernel: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    device: int = 0


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy the value of a slot into one on another device, the one that does the copying."""

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
    """Run one of two step lists in the same activation; each ends by naming the slots of its results."""

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


Step: TypeAlias = RunKernel | Copy | Branch | Invoke


@dataclass(frozen=True, slots=True)
class Block:
    """One function of the plan.

    Attributes:
        params: Slots of the parameters.
        constants: (slot, constant number) of constants that steps read directly.
        steps: In order of execution.
        results: Slots of the returned values; a slot may stand twice or be a parameter.
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
        name: For people, and for calling by name.
        dtype: Element type of a tensor; of a sequence or optional the text of its whole type.
        shape: Unknown dimensions are -1 or a symbol; None for an unknown rank, and where not a tensor.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole program: its blocks, what it takes and returns, and what is known of its slots.

    Attributes:
        blocks: By name; execution starts at "main".
        inputs: What the caller passes, in order.
        outputs: What the caller gets, in order.
        output_structure: How outputs nest for the caller: an index into `outputs`, or a tuple of structures.
        slot_types: Types of the slots of "main", for preallocation; None where not a tensor.
        devices: Names of the devices ("cpu:0", "mock:1") by number; empty where all is done by the caller's
            thread on all cores.
    """

    blocks: dict[str, Block]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    output_structure: Structure
    slot_types: tuple[TensorInfo | None, ...]
    devices: tuple[str, ...] = ()


Structure: TypeAlias = "int | tuple[Structure, ...]"
