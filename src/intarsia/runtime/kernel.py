"""What a toolchain hands to the runtime: something that runs, and what is needed to make it again.

The runtime knows no toolchain: it finds the loader of a saved kernel by the toolchain's name, through the
entry points `intarsia.toolchains` (DESIGN sections 9 and 10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy.typing as npt

from intarsia.runtime.availability import Available, Unavailable
from intarsia.support.registry import Registry

Array: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = "Array | list[Value] | None"
"""What flows between kernels: arrays; lists and None only for ONNX's sequences and optionals."""


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Everything from which a kernel can be made again, here or on another machine.

    Attributes:
        toolchain: Name of the toolchain that compiles it.
        target: Text of the target it was compiled for, such as "cpu -toolchain=openvino -threads=2".
        model: ONNX model; its large initializers are marked as external and stand in `weights`.
        weights: Arrays of those initializers by name; shared with the program's constants, never copied.
    """

    toolchain: str
    target: str
    model: bytes
    weights: Mapping[str, Array] = field(default_factory=dict)


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
                nobody else holds. Between the kernels of a straight-line plan the same array objects come
                again on every call, so it pays to keep what was bound as long as address, shape and element
                type are the same; inputs and large results of the whole plan, and all arrays of other plans,
                change. A kernel keeps no array of a call alive after it.

        Returns:
            The results in order; the given array where there was one.

        Raises:
            ExecutionError: The engine failed.
        """


@runtime_checkable
class ClosableKernel(Protocol):
    """A kernel that can give back what it holds; whoever owns the kernel calls `close` once."""

    def close(self) -> None:
        """Let go of sessions, buffers and lent weights; `run` and `blob` are a UsageError from now on."""


class KernelLoader(Protocol):
    """The part of a toolchain that a saved artifact needs."""

    def availability(self) -> Available | Unavailable:
        """Whether it can be used here, and in which version; never raises."""

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        """Make the kernel again, from the blob if it is given and fits, else from the source.

        Raises:
            CompileError: The toolchain refuses the source.
            MissingToolchainError: The toolchain is not usable on this machine.
        """


@runtime_checkable
class CompilesApart(Protocol):
    """A toolchain whose kernels, once compiled, need less than compiling them does."""

    def loading_availability(self) -> Available | Unavailable:
        """Whether a kernel can be loaded from its compiled form here; versions as `availability`."""


@runtime_checkable
class LoadsInPlace(Protocol):
    """A toolchain whose kernels work with the bytes of a compiled form as they are, mapped from a file."""

    def load_in_place(self, source: KernelSource, blob: memoryview) -> Kernel:
        """As `load`; the blob stays as it is while the kernel lives."""


TOOLCHAINS: Registry[type[KernelLoader]] = Registry("toolchain", group="intarsia.toolchains")
"""Toolchain classes by name; each is constructed without arguments."""
