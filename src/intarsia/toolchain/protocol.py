"""What a toolchain is (DESIGN section 9): one class, registered by entry point `intarsia.toolchains`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Protocol, runtime_checkable

from intarsia.ir import Call, Function, IRModule
from intarsia.runtime.availability import Available, Unavailable
from intarsia.runtime.kernel import Kernel, KernelLoader
from intarsia.target import Target

__all__ = ["Available", "FusionStyle", "OnnxLimits", "RunsOnDevices", "Toolchain", "Unavailable"]


@dataclass(frozen=True, slots=True)
class OnnxLimits:
    """Newest ONNX opset and IR version that the toolchain reads."""

    opset: int
    ir_version: int


class FusionStyle(Enum):
    """How large the regions are that a toolchain fuses (seed collage_rfc)."""

    NONE = "none"
    OPERATOR = "operator"
    GRAPH = "graph"


class Toolchain(KernelLoader, Protocol):
    """An inference engine that can run a function of the language."""

    name: ClassVar[str]
    fusion_style: ClassVar[FusionStyle]
    onnx_limits: ClassVar[OnnxLimits]
    thread_policy: ClassVar[str]
    """How threads are used, for the host fingerprint: spinning, pools, pinning."""
    conflicts: ClassVar[frozenset[str]]
    """Names of toolchains that must not live in the same process."""

    def availability(self) -> Available | Unavailable:
        """Whether it can be used here; never raises."""

    def supports(self, call: Call) -> bool:
        """Operator predicate: whether offering this call to `compile` is worthwhile; quick and optimistic."""

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        """Compile a function; `module` holds the global functions that it calls.

        Raises:
            CompileError: It cannot; the message names what is not supported.
            MissingToolchainError: It is not usable here.
        """


@runtime_checkable
class RunsOnDevices(Protocol):
    """A toolchain with kernels for devices other than the CPU.

    One that has none for the CPU has the class attribute `is_for_gpus_only`, which is true.
    """

    def availability_on(self, kind: str) -> Available | Unavailable:
        """Whether it can be used here for devices of a kind, such as "cuda"; never raises."""
