"""What a program would have compiled, to look at kernels before they are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from intarsia.build.kernel_table import FunctionTable
from intarsia.build.program import ProgramLowering
from intarsia.ir import Function, IRModule
from intarsia.runtime.plan import Branch, RunKernel, Step
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """A function that `build` gives to a toolchain.

    Attributes:
        function: Closed: all that it uses from outside is a parameter.
        target: Target to compile for.
        module: Global functions that it may call.
        name: Name of the kernel.
        calls: Number of steps of the plan that run it.
    """

    function: Function
    target: Target
    module: IRModule
    name: str
    calls: int


def kernel_requests(mod: IRModule) -> tuple[KernelRequest, ...]:
    """The functions for which `build(mod)` compiles kernels, each once, in their order; nothing is compiled.

    Raises:
        UnsupportedModelError: A function is used as a value, or a type is unknown.
    """
    table = _Requests(mod)
    plan = ProgramLowering(table, REFERENCE_TARGET, whole_control_flow=False).plan()
    calls = Counter(step.kernel for block in plan.blocks.values() for step in _kernel_steps(block.steps))
    return tuple(
        KernelRequest(function, target, module, name, calls[number])
        for number, (function, target, module, name) in enumerate(table.requested)
    )


@dataclass(slots=True)
class _Requests(FunctionTable):
    """Writes down what would be compiled."""

    requested: list[tuple[Function, Target, IRModule, str]] = field(default_factory=list)

    def _add(self, function: Function, target: Target, name: str, device: int) -> None:  # noqa: ARG002 - in `target`
        self.requested.append((function, target, self.module, name))


def _kernel_steps(steps: Iterable[Step]) -> Iterator[RunKernel]:
    stack = list(steps)
    while stack:
        step = stack.pop()
        if isinstance(step, RunKernel):
            yield step
        elif isinstance(step, Branch):
            stack += [*step.true_steps, *step.false_steps]
