"""The parts of an executable that its artifact contains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from intarsia.runtime.kernel import Array, Kernel
from intarsia.runtime.plan import ExecutionPlan
from intarsia.runtime.provenance import Provenance
from intarsia.runtime.self_test import SelfTest


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The parts of an executable.

    Attributes:
        plan: Steps of the program in their order.
        kernels: Compiled functions, by the numbers that the plan uses.
        constants: Arrays that the plan's blocks read directly.
        make_provenance: Function that returns the origin of the program; called on first use, as printing
            takes time.
        kernel_names: A name for each kernel, for errors and profiles.
        self_test: Inputs with their right outputs, if there are any.
        explanation: Reasons for the build as text for `intarsia explain`, if they are known.
    """

    plan: ExecutionPlan
    kernels: tuple[Kernel, ...]
    constants: tuple[Array, ...]
    make_provenance: Callable[[], Provenance]
    kernel_names: tuple[str, ...]
    self_test: SelfTest | None = None
    explanation: str | None = None
