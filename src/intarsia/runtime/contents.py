"""The parts of an executable that its artifact contains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

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

    @classmethod
    def of(
        cls,
        plan: ExecutionPlan,
        kernels: Sequence[Kernel],
        constants: Sequence[Array],
        provenance: Provenance | Callable[[], Provenance] | None,
        kernel_names: Sequence[str] | None,
        self_test: SelfTest | None,
        explanation: str | None,
    ) -> Self:
        """Return the parts as an executable is given them: with default names, and an origin or none."""
        given = Provenance() if provenance is None else provenance
        make_provenance = (lambda: given) if isinstance(given, Provenance) else given
        names = [f"kernel{i}" for i in range(len(kernels))] if kernel_names is None else kernel_names
        parts = tuple(kernels), tuple(constants), make_provenance, tuple(names)
        return cls(plan, *parts, self_test, explanation)

    def released(self) -> Self:
        """Return what stays of a closed executable: the description of the plan."""
        return replace(self, kernels=(), constants=(), make_provenance=Provenance, self_test=None)

    def explained(self, explanation: str | None) -> Self:
        """Return the parts with other reasons for the build; the same parts if None are given."""
        return self if explanation is None else replace(self, explanation=explanation)
