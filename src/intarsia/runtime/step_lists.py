"""Flat step lists of a block: a branch refers to its lists by number, so that no reader needs recursion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from intarsia.runtime.plan import Branch, Copy, ExecutionPlan, Invoke, Repeat, RunKernel, Step


@dataclass(frozen=True, slots=True)
class FlatBranch:
    """A Branch with the numbers of its two step lists in place of the lists."""

    cond: int
    true_list: int
    true_results: tuple[int, ...]
    false_list: int
    false_results: tuple[int, ...]
    outputs: tuple[int, ...]


FlatStep: TypeAlias = RunKernel | Copy | Invoke | Repeat | FlatBranch


def flattened(steps: Sequence[Step]) -> list[list[FlatStep]]:
    """Return all step lists: list 0 has the given steps.

    The lists of a branch follow the list that contains it.
    """
    pending: list[Sequence[Step]] = [steps]
    lists: list[list[FlatStep]] = []
    while len(lists) < len(pending):
        flat: list[FlatStep] = []
        for step in pending[len(lists)]:
            if isinstance(step, Branch):
                number = len(pending)
                pending += [step.true_steps, step.false_steps]
                results = (step.true_results, number + 1, step.false_results)
                flat.append(FlatBranch(step.cond, number, *results, step.outputs))
            else:
                flat.append(step)
        lists.append(flat)
    return lists


def kernels_of(plan: ExecutionPlan) -> set[int]:
    """Return the numbers of the kernels that the blocks of a plan run."""
    return {
        step.kernel
        for block in plan.blocks.values()
        for steps in flattened(block.steps)
        for step in steps
        if isinstance(step, RunKernel)
    }


def nested(lists: Sequence[Sequence[FlatStep]]) -> tuple[Step, ...]:
    """Return the nested steps of flat lists, the inverse of `flattened`.

    Raises:
        ValueError: A branch refers to a list that does not come after its own, or that another one uses.
    """
    branches = [step for steps in lists for step in steps if isinstance(step, FlatBranch)]
    named = [number for step in branches for number in (step.true_list, step.false_list)]
    if len(set(named)) < len(named):  # shared lists would be written out once for each of 2**n paths
        raise ValueError("two branches refer to one list")
    done: dict[int, tuple[Step, ...]] = {}
    for number in range(len(lists) - 1, -1, -1):
        steps: list[Step] = []
        for step in lists[number]:
            if isinstance(step, FlatBranch):
                if step.true_list not in done or step.false_list not in done:
                    raise ValueError(f"a branch in step list {number} refers to a list that is not after it")
                lists_of = (
                    done[step.true_list],
                    step.true_results,
                    done[step.false_list],
                    step.false_results,
                )
                steps.append(Branch(step.cond, *lists_of, step.outputs))
            else:
                steps.append(step)
        done[number] = tuple(steps)
    return done.get(0, ())


def read_slots(step: FlatStep) -> tuple[int, ...]:
    """Return the slots that a step itself reads, without the reads of a branch's lists."""
    return (step.cond,) if isinstance(step, FlatBranch) else step.inputs
