"""Check that a plan is well formed: every slot, kernel, constant and block that it uses exists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from intarsia.runtime.cache_check import cache_complaint
from intarsia.runtime.entry_points import find_dim
from intarsia.runtime.plan import Branch, Copy, ExecutionPlan, PlanBlock, Repeat, RunKernel, Step, Structure
from intarsia.runtime.plan_device_check import device_complaint

_MOST_SLOTS: Final = 1 << 22
"""Maximum number of slots of one activation, which allocates a list of them.

The largest programs have ten thousand.
"""


def plan_complaint(plan: ExecutionPlan, kernels: int, constants: int) -> str:
    """Return the first defect of a plan, or the empty string.

    Args:
        plan: The plan.
        kernels: Number of kernels that it may use.
        constants: Number of constants that it may use.
    """
    main = plan.blocks.get("main")
    if main is None:
        return 'the plan has no block "main"'
    if (len(main.params), len(main.results)) != (len(plan.inputs), len(plan.outputs)):
        return 'block "main" does not take and return what the plan says'
    if len(plan.slot_types) != main.slots:
        return f"the plan has {len(plan.slot_types)} slot types, expected {main.slots}"
    if any(not 0 <= index < len(plan.outputs) for index in _indices(plan.output_structure)):
        return "the output structure refers to an output that is not there"
    complaint = _variants_complaint(plan) or cache_complaint(plan)
    if complaint:
        return complaint
    for name, block in plan.blocks.items():
        complaint = _BlockCheck(plan, block, kernels, constants).complaint()
        if complaint:
            return f'block "{name}": {complaint}'
    return device_complaint(plan)


def _variants_complaint(plan: ExecutionPlan) -> str:
    names = {frozenset(variant.sizes) for variant in plan.variants}
    if len(names) > 1:
        return "its variants are for different dimensions"
    if any(find_dim(plan, name) is None for name in next(iter(names), ())) or frozenset() in names:
        return "a variant is for a dimension that no input has"
    seen: set[frozenset[tuple[str, int]]] = set()
    for variant in plan.variants:
        sizes = variant.sizes.items()
        if frozenset(sizes) in seen:
            return f"two variants are for {', '.join(f'{name}={size}' for name, size in sizes)}"
        seen.add(frozenset(sizes))
        block = plan.blocks.get(variant.block)
        if block is None or variant.block == "main":
            return f'it has no block "{variant.block}" for a variant'
        if (len(block.params), len(block.results)) != (len(plan.inputs), len(plan.outputs)):
            return f'block "{variant.block}" does not take and return what the plan says'
        if len(variant.slot_types) != block.slots:
            return f'block "{variant.block}" has {len(variant.slot_types)} slot types, expected {block.slots}'
    return ""


def _repeat_complaint(step: Repeat, body: PlanBlock) -> str:
    counts = len(body.params), len(body.results)
    lengths = len(step.scanned), len(step.states) + len(step.row_axes), len(step.row_axes)
    expected = len(step.scan_axes), len(step.outputs), len(step.empty)
    if counts != (step.body_params, step.body_results) or lengths != expected:
        return f'it repeats block "{step.block}" with another number of values'
    if len(step.trips) > 1 or len(step.condition) > 1 or bool(step.scanned) == step.is_loop:
        return f'it repeats block "{step.block}", but is neither a loop nor a scan'
    return ""


def _indices(structure: Structure) -> Iterable[int]:
    if isinstance(structure, int):
        yield structure
    else:
        for part in structure:
            yield from _indices(part)


@dataclass(slots=True)
class _OpenList:
    """A step list during its check; `written` are the slots that it has defined so far."""

    steps: Sequence[Step]
    results: Sequence[int]
    written: list[int] = field(default_factory=list)
    position: int = 0


@dataclass(frozen=True, slots=True)
class _Joined:
    """The end of a Branch: after both lists, its outputs are defined in the list that contains it."""

    outputs: tuple[int, ...]
    around: _OpenList


class _BlockCheck:
    """Checks the steps of a block in order, with the set of defined slots."""

    def __init__(self, plan: ExecutionPlan, block: PlanBlock, kernels: int, constants: int) -> None:
        self._plan, self._block = plan, block
        self._kernels, self._constants = kernels, constants
        self._defined: set[int] = set()

    def complaint(self) -> str:
        block = self._block
        if block.slots > _MOST_SLOTS:
            return f"it has {block.slots} slots, expected at most {_MOST_SLOTS}"
        if any(number >= self._constants for _, number in block.constants):
            return f"it names a constant that is not there; the plan has {self._constants}"
        complaint = self._define([*block.params, *(slot for slot, _ in block.constants)])
        stack: list[_OpenList | _Joined] = [_OpenList(block.steps, block.results)]
        while stack and not complaint:
            top = stack[-1]
            if isinstance(top, _Joined):
                stack.pop()
                complaint = self._define(top.outputs)
                top.around.written += top.outputs
            elif top.position == len(top.steps):
                stack.pop()
                complaint = self._undefined(top.results)
                # Slots that one list of a branch defines do not dominate the other list nor the steps after
                # the branch.
                self._defined.difference_update(top.written)
            else:
                top.position += 1
                complaint = self._enter(top, top.steps[top.position - 1], stack)
        return complaint

    def _enter(self, around: _OpenList, step: Step, stack: list[_OpenList | _Joined]) -> str:
        if isinstance(step, Branch):
            stack.append(_Joined(step.outputs, around))
            stack.append(_OpenList(step.false_steps, step.false_results))
            stack.append(_OpenList(step.true_steps, step.true_results))
            lengths = {len(step.outputs), len(step.true_results), len(step.false_results)}
            return self._undefined([step.cond]) or (
                "" if len(lengths) == 1 else "a branch has ragged results"
            )
        around.written += step.outputs
        return self._undefined(step.inputs) or self._callee(step) or self._define(step.outputs)

    def _callee(self, step: Step) -> str:
        if isinstance(step, (Branch, Copy)):
            return ""
        if isinstance(step, RunKernel):
            known = step.kernel < self._kernels
            return "" if known else f"it runs kernel {step.kernel}; there are {self._kernels}"
        called = self._plan.blocks.get(step.block)
        if called is None:
            return f'it calls block "{step.block}", which is not there'
        if isinstance(step, Repeat):
            return _repeat_complaint(step, called)
        fits = (len(step.inputs), len(step.outputs)) == (len(called.params), len(called.results))
        return "" if fits else f'it calls block "{step.block}" with another number of values'

    def _undefined(self, slots: Sequence[int]) -> str:
        missing = [slot for slot in slots if slot not in self._defined]
        return f"slot {missing[0]} is read before it is written" if missing else ""

    def _define(self, slots: Sequence[int]) -> str:
        for slot in slots:
            if not 0 <= slot < self._block.slots:
                return f"slot {slot} is out of range; it has {self._block.slots}"
            if slot in self._defined:
                return f"slot {slot} is written twice"
            self._defined.add(slot)
        return ""
