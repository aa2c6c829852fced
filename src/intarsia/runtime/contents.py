"""What an executable is made of, and what its artifact holds."""

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
        plan: What is run in which order.
        kernels: Compiled functions, by the numbers that the plan uses.
        constants: Arrays that the plan's blocks read directly.
        make_provenance: Tells where it comes from, when that is first asked for: printing takes time.
        kernel_names: A name for each kernel, for errors and profiles.
        self_test: A call with its right answer, if there is one.
        explanation: Why the program is built as it is, as text for `intarsia explain`, if that is known.
    """

    plan: ExecutionPlan
    kernels: tuple[Kernel, ...]
    constants: tuple[Array, ...]
    make_provenance: Callable[[], Provenance]
    kernel_names: tuple[str, ...]
    self_test: SelfTest | None = None
    explanation: str | None = None
