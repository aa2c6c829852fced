"""A program of GPU kernels as data."""

from __future__ import annotations

from dataclasses import dataclass, field

from intarsia.toolchain.native.region import Argument, RegionConstant, RegionPort


@dataclass(frozen=True, slots=True)
class GpuLaunch:
    """A launch of a kernel.

    Attributes:
        symbol: Symbol of the kernel.
        blocks: Number of blocks.
        threads: Number of threads of a block.
        arguments: Buffers whose addresses it is given.
        name: Name of the operators that it computes, for profiles.
        nodes: Names of the nodes of the source that it computes.
        is_conversion: Whether it copies a value into another layout.
        shared_bytes: Size of the shared memory of a block in bytes that the launch adds.
    """

    symbol: str
    blocks: int
    threads: int
    arguments: tuple[Argument, ...]
    name: str
    nodes: tuple[str, ...] = ()
    is_conversion: bool = False
    shared_bytes: int = 0


@dataclass(frozen=True, eq=False)
class GpuProgram:
    """Kernels of a source, and the order of their launches.

    Attributes:
        image: Code of all kernels, for the driver: PTX with a null byte at its end.
        launches: Launches in order.
        constants: Arrays that kernels read, uploaded once.
        params: Parameters that the caller passes.
        results: Results for the caller.
        copies: Results that no kernel writes: position, and the buffer that is copied there.
        arena_bytes: Size of the memory for values between kernels and inside of them.
    """

    image: bytes = field(repr=False)
    launches: tuple[GpuLaunch, ...]
    constants: tuple[RegionConstant, ...]
    params: tuple[RegionPort, ...]
    results: tuple[RegionPort, ...]
    copies: tuple[tuple[int, Argument], ...]
    arena_bytes: int
