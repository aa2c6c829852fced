"""Plans for several devices over vectors of float32, with kernels that are NumPy functions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.fake_kernels import FakeKernel, f32, fake, plan_of

from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.plan import Copy, ExecutionPlan, PlanBlock, RunKernel, Step
from intarsia.runtime.plan_check import plan_complaint


def device_plan(
    names: Sequence[str],
    slot_devices: Sequence[int],
    steps: Sequence[Step],
    results: Sequence[int],
    *,
    inputs: int = 1,
    size: int = 8,
    constants: Sequence[tuple[int, int]] = (),
    blocks: dict[str, PlanBlock] | None = None,
) -> ExecutionPlan:
    """A plan over vectors of one size; the first slots are its inputs."""
    info = f32("a", size)
    plan = plan_of(steps, [info] * inputs, results, [info] * len(slot_devices), constants, blocks)
    plan = replace(plan, inputs=tuple(replace(info, name=f"x{index}") for index in range(inputs)))
    main = replace(plan.blocks["main"], slot_devices=tuple(slot_devices))
    return replace(plan, blocks={**plan.blocks, "main": main}, devices=tuple(names))


def is_right(plan: ExecutionPlan, kernels: int, constants: int = 0) -> bool:
    """Whether nothing is wrong with a plan."""
    return plan_complaint(plan, kernels, constants) == ""


def two_branches(names: Sequence[str]) -> ExecutionPlan:
    """X on 0, doubled there; copied to 1 and incremented there; both added on 0. Kernels 0, 1 and 2."""
    steps: list[Step] = [
        Copy(0, 1, 1),
        RunKernel(0, (0,), (2,), 0),
        RunKernel(1, (1,), (3,), 1),
        Copy(3, 4, 0),
        RunKernel(2, (2, 4), (5,), 0),
    ]
    return device_plan(names, [0, 1, 0, 1, 0, 0], steps, [5])


def branch_kernels() -> list[FakeKernel]:
    """The kernels of `two_branches`, each usable by one executable."""
    return [fake("double"), fake("increment"), fake("add")]


class HookedKernel(FakeKernel):
    """Calls a function before it computes."""

    def __init__(self, name: str, hook: Callable[[], object]) -> None:
        super().__init__(fake(name).source)
        self._hook = hook

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        self._hook()
        return super().run(inputs, outputs)


def meeting(name: str, barrier: threading.Barrier) -> HookedKernel:
    """A kernel that goes on only once others have come as far in their threads."""
    return HookedKernel(name, barrier.wait)
