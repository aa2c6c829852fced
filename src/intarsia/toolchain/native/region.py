"""A region of native kernels as data: what is kept in memory and in artifacts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.native.execution.array_parameter import ArrayParameter
from intarsia.native.machine.isa import Isa
from intarsia.toolchain.native.counted_result import CountedResult
from intarsia.toolchain.native.index_check import IndexCheck

if TYPE_CHECKING:
    from intarsia.native.packing import Packing

Array: TypeAlias = npt.NDArray[Any]


class ArgumentKind(StrEnum):
    """Where an array is that a kernel is given."""

    SLOT = "slot"
    """The caller's: its position among parameters, then results."""
    ARENA = "arena"
    """In the region's own memory: the offset in bytes."""
    CONSTANT = "constant"
    """The position among the constants."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An array that a kernel is given; the kernel's parameter says its shape and element type."""

    kind: ArgumentKind
    number: int


@dataclass(frozen=True, slots=True)
class RegionPort:
    """What the caller passes or gets."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class RegionConstant:
    """A constant that kernels read.

    Attributes:
        array: Array that kernels read.
        weight: Name of the weight of the source whose elements it has; None if it is no weight.
        packing: New layout of the weight's elements, in the packing's shape; None if they keep theirs.
    """

    array: Array = field(repr=False)
    weight: str | None = None
    packing: Packing | None = None


@dataclass(frozen=True, slots=True)
class RegionKernel:
    """A compiled kernel, with what is needed to load it without the compiler.

    Attributes:
        object_code: A relocatable file.
        symbol: The kernel's name in it.
        parameters: Parameters of the kernel, in order.
        scratch_bytes: Scratch memory that it needs in each thread.
        library: Name of the library that it calls; "" for none.
    """

    object_code: bytes = field(repr=False)
    symbol: str
    parameters: tuple[ArrayParameter, ...]
    scratch_bytes: int
    library: str = ""


@dataclass(frozen=True, slots=True)
class RegionCall:
    """A call of a kernel.

    Attributes:
        kernel: Position of the kernel among the kernels.
        arguments: Arrays that the kernel is given.
        group: Key of the group of the rules that the call computes (`KernelPlan.rule_group`).
        computation: Key of what it computes (`structural_key`).
        name: Name of the kernel in profiles (`KernelPlan.name`).
        nodes: Names of the nodes of the source that the call computes.
        is_conversion: Whether it copies a value into another layout.
    """

    kernel: int
    arguments: tuple[Argument, ...]
    group: str = ""
    computation: str = ""
    name: str = ""
    nodes: tuple[str, ...] = ()
    is_conversion: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class NativeRegion:
    """Compiled kernels, and how they are called.

    Attributes:
        isa: Instruction set of the kernels.
        driver: Object code of what runs them.
        threads: Number of threads that the kernels were made for, and run on.
        kernels: Each different kernel once.
        calls: Calls in the order in which they run.
        constants: Constants that kernels read besides.
        params: Parameters that the caller passes.
        results: Results for the caller, then the values that `checks` compare.
        copies: Results that no kernel writes: position, and what is copied there after the calls.
        arena_bytes: Size of the memory for values between kernels.
        counted: Results that are counted vectors, of which the caller gets the rows.
        checks: Range checks of indices, in the order of the operators.
    """

    isa: Isa
    driver: bytes = field(repr=False)
    threads: int
    kernels: tuple[RegionKernel, ...]
    calls: tuple[RegionCall, ...]
    constants: tuple[RegionConstant, ...]
    params: tuple[RegionPort, ...]
    results: tuple[RegionPort, ...]
    copies: tuple[tuple[int, Argument], ...]
    arena_bytes: int
    counted: tuple[CountedResult, ...] = ()
    checks: tuple[IndexCheck, ...] = ()

    @property
    def hidden_results(self) -> int:
        """Number of the last results, which the caller does not get."""
        return 2 * len(self.checks)
