"""The interface between toolchains and the runtime: compiled kernels, and the sources to compile them again.

The runtime imports no toolchain: it finds the loader of a saved kernel by the toolchain's name, through the
entry points `intarsia.toolchains` (DESIGN sections 9 and 10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from intarsia.runtime.availability import Available, Unavailable
from intarsia.support.registry import Registry

Array: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = "Array | list[Value] | None"
"""A value between kernels: an array; a list or None only for ONNX's sequences and optionals."""


@dataclass(frozen=True, slots=True)
class KernelSource:
    """The source from which a kernel can be compiled again, here or on another machine.

    Attributes:
        toolchain: Name of the toolchain that compiles it.
        target: Text of the target it was compiled for, such as "cpu -toolchain=openvino -threads=2".
        model: Serialised ONNX model; its large initializers are external and stored in `weights`.
        weights: Arrays of those initializers by name; shared with the program's constants, never copied.
        pass_settings: Settings of the passes of a toolchain that runs some, as text; "" for the default ones.
    """

    toolchain: str
    target: str
    model: bytes
    weights: Mapping[str, Array] = field(default_factory=dict)
    pass_settings: str = ""


class Kernel(Protocol):
    """A compiled function on arrays. Not thread-safe: the executable that owns it runs one call at a time."""

    @property
    def source(self) -> KernelSource:
        """What the kernel was compiled from."""

    def blob(self) -> bytes | None:
        """The compiled form, for `KernelLoader.load` on the same kind of machine; None if there is none."""

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """Compute the outputs.

        Args:
            inputs: One value per parameter; arrays are C-contiguous and are not written to.
            outputs: One entry per result: a C-contiguous array of its exact shape and dtype to write into
                (no copy is made where the toolchain can avoid it), or None to have one allocated that
                has no other reference. Between the kernels of a straight-line plan the same array objects
                come
                again on every call, so it pays to keep what was bound as long as address, shape and element
                type are the same; inputs and large results of the whole plan, and all arrays of other plans,
                change. A kernel keeps no array of a call alive after it.

        Returns:
            The results in order; the given array where there was one.

        Raises:
            ExecutionError: The engine failed.
        """


@runtime_checkable
class BindableKernel(Protocol):
    """A kernel that can be prepared for arrays that stay where they are."""

    def bind(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> Callable[[], None] | None:
        """Return a function that computes the outputs from what the inputs contain when it is called.

        It keeps the arrays alive. As `run`, it runs one call at a time.

        Args:
            inputs: One value per parameter; arrays are C-contiguous.
            outputs: A C-contiguous array of its exact shape and dtype for each result.

        Returns:
            The function; None if `run` has to be called each time.
        """


@runtime_checkable
class AllocatingKernel(Protocol):
    """A kernel whose results share no memory with anything but the arrays that it was given for them.

    Attributes:
        has_new_results: Whether each result that `run` allocates is memory of its own, without a look at it.
    """

    has_new_results: bool


@dataclass(frozen=True, slots=True)
class AddressSeries:
    """Where a parameter of a kernel lies in each of many calls.

    Attributes:
        example: An array of the type and shape that it has in all of them.
        addresses: Address of its first element in each call; memory there is C-contiguous and aligned.
    """

    example: Array
    addresses: npt.NDArray[np.int64]


@runtime_checkable
class RepeatableKernel(Protocol):
    """A kernel that can run many times in one call."""

    def repeated_results(self) -> Sequence[tuple[tuple[int, ...], np.dtype[Any]]] | None:
        """Return the shape and element type of each result; None if it has to be called each time."""

    def repeat(self, count: int, inputs: Sequence[AddressSeries], outputs: Sequence[AddressSeries]) -> None:
        """Run one call after another.

        Args:
            count: Number of calls.
            inputs: Places of each parameter.
            outputs: Places of each result; calls may read what earlier ones have written.

        Raises:
            ExecutionError: A parameter or result has another type or shape.
        """


@runtime_checkable
class GrowingKernel(Protocol):
    """A kernel whose memory grows with the sizes of its calls."""

    def expect_largest(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Take memory for the largest call in the background, so that no first call of a size waits for it.

        Args:
            shapes: Shape of each parameter in this call; an axis whose extent is not known has 1.
        """


@runtime_checkable
class CrossCompiledKernel(Protocol):
    """A kernel that may be compiled for a CPU that its target names, in place of this machine's."""

    @property
    def named_architecture(self) -> str | None:
        """Architecture of the CPU that the target names; None if it names none.

        The compiled form of such a kernel contains the instruction sets that it needs, and its loader checks
        them.
        """


@runtime_checkable
class ClosableKernel(Protocol):
    """A kernel that can give back what it holds; whoever owns the kernel calls `close` once."""

    def close(self) -> None:
        """Release sessions, buffers and shared weights; `run` and `blob` raise a UsageError from now on."""


@runtime_checkable
class ClonableKernel(Protocol):
    """A kernel that others can share weights and code with."""

    def clones(self, count: int, threads: int | None = None) -> Sequence[Kernel]:
        """Return kernels for the same source that may run at the same time as this one and one another.

        Args:
            count: Number of kernels, 1 or more.
            threads: Number of threads of each kernel, which it shares with no other; None for those of this
                kernel, which all of them share.

        Raises:
            CompileError: The toolchain cannot run the source on so many threads.
            UsageError: The kernel is closed.
        """


class KernelLoader(Protocol):
    """The part of a toolchain that a saved artifact needs."""

    def availability(self) -> Available | Unavailable:
        """Return whether it can be used here, and its version; never raises."""

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        """Load the kernel from the blob if it is given and fits, else compile it from the source.

        Raises:
            CompileError: The toolchain refuses the source.
            MissingToolchainError: The toolchain is not usable on this machine.
        """


@runtime_checkable
class CompilesApart(Protocol):
    """A toolchain that needs fewer packages to load a compiled kernel than to compile one."""

    def loading_availability(self) -> Available | Unavailable:
        """Return whether a kernel can be loaded from its compiled form here; versions as `availability`."""


@runtime_checkable
class LoadsInPlace(Protocol):
    """A toolchain with kernels that use the bytes of a compiled form in place, mapped from a file."""

    def load_in_place(self, source: KernelSource, blob: memoryview) -> Kernel:
        """Load the kernel as `load` does; the blob stays unchanged while the kernel lives."""


@runtime_checkable
class CallsLibraries(Protocol):
    """A toolchain with kernels that call libraries of other packages."""

    def missing_library(self, target: str) -> str:
        """Return the name of a library that kernels for a target call and this machine lacks, or ""."""


TOOLCHAINS: Registry[type[KernelLoader]] = Registry(
    "toolchain",
    group="intarsia.toolchains",
    defaults={"native": "intarsia.toolchain.native.loader:NativeLoader"},
)
"""Toolchain classes by name; each is constructed without arguments.

Native's loader is what the wheel intarsia-runtime has, which announces no toolchain: where the compiler is
installed as well, its class is the only one announced.
"""
