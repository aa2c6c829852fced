"""Run branches and calls of blocks on an explicit stack: recursion of any depth works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.ownership import owned
from intarsia.runtime.plan import Copy, ExecutionPlan, Invoke, PlanBlock, Repeat, RunKernel
from intarsia.runtime.repetition import Repetition, single_element
from intarsia.runtime.scan_at_once import kernel_body, run_scan_at_once
from intarsia.runtime.step_lists import FlatBranch, FlatStep, flattened, read_slots


@dataclass(frozen=True, slots=True)
class PreparedBlock:
    """A block with flat step lists, and for each step the slots that are dead after it."""

    block: PlanBlock
    lists: tuple[tuple[tuple[FlatStep, tuple[int, ...]], ...], ...]
    constants: tuple[tuple[int, Value], ...]


@dataclass(slots=True)
class Activation:
    """An active step list, and the destination of its results.

    Attributes:
        prepared: Block that contains the list.
        steps: Steps of the list, each with the slots that are dead after it.
        values: Values of the block's slots; a branch shares those of the list that contains it.
        results: Slots in `values` of the list's results.
        outputs: Slots in `target` that receive the results.
        target: Values of the slots of the caller.
        release: Slots of `target` that are dead after the list.
        position: Number of the next step.
    """

    prepared: PreparedBlock
    steps: tuple[tuple[FlatStep, tuple[int, ...]], ...]
    values: list[Value]
    results: tuple[int, ...]
    outputs: Sequence[int]
    target: list[Value]
    release: tuple[int, ...]
    position: int = 0


class Interpreter:
    """The runner of any plan; kernels allocate their results."""

    _has_devices: ClassVar[bool] = False

    def __init__(
        self, plan: ExecutionPlan, kernels: Sequence[NamedKernel], constants: Sequence[Array]
    ) -> None:
        self._kernels = kernels
        self._blocks: Mapping[str, PreparedBlock] = {
            name: self._prepare_block(block, constants) for name, block in plan.blocks.items()
        }
        bodies = {name: None if self._has_devices else kernel_body(plan.blocks, name) for name in plan.blocks}
        self._scans = {name: body for name, body in bodies.items() if body is not None}
        self._kept = [array for block in self._blocks.values() for _, array in block.constants]

    def run(self, inputs: Sequence[Value]) -> list[Value]:
        """Run the program and return its results; they belong to the caller."""
        return owned(self.run_into(inputs, ()), [*inputs, *self._kept])

    def run_into(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> list[Value]:
        """Run the program and return its results, which the caller has yet to copy into its buffers."""
        del outputs  # shapes are not known before the run
        results: list[Value] = [None] * len(self._blocks["main"].block.results)
        main = _activate(self._blocks["main"], inputs, range(len(results)), results, ())
        stack: list[Activation | Repetition] = [main]
        while stack:
            top = stack[-1]
            if isinstance(top, Repetition):
                next_inputs = top.next_arguments()
                if next_inputs is None:
                    stack.pop()
                    top.finish()
                else:
                    body, returned = self._blocks[top.step.block], top.returned
                    stack.append(_activate(body, next_inputs, range(len(returned)), returned, ()))
                continue
            if top.position == len(top.steps):
                stack.pop()
                _finish(top)
                continue
            step, release = top.steps[top.position]
            top.position += 1
            if isinstance(step, RunKernel):
                self._run_kernel(step, top.values)
                _forget(top.values, release)
            elif isinstance(step, Copy):
                self._copy(step, top)
                _forget(top.values, release)
            elif isinstance(step, Invoke):
                arguments = [top.values[slot] for slot in step.inputs]
                called = self._blocks[step.block]
                stack.append(_activate(called, arguments, step.outputs, top.values, release))
            elif isinstance(step, Repeat):
                kernel = self._scans.get(step.block)
                if kernel and not step.is_loop and run_scan_at_once(step, kernel, self._kernels, top.values):
                    _forget(top.values, release)
                else:
                    stack.append(Repetition(step, top.values, release))
            else:
                truth = _is_true(self._condition(step.cond, top))
                number = step.true_list if truth else step.false_list
                results_of = step.true_results if truth else step.false_results
                taken = top.prepared.lists[number]
                values = top.values
                stack.append(
                    Activation(top.prepared, taken, values, results_of, step.outputs, values, release)
                )
        return results

    def _run_kernel(self, step: RunKernel, values: list[Value]) -> None:
        arguments = [values[slot] for slot in step.inputs]
        results = self._kernels[step.kernel].run(arguments, [None] * len(step.outputs))
        for slot, value in zip(step.outputs, results, strict=True):
            values[slot] = value

    def _copy(self, step: Copy, activation: Activation) -> None:
        """Share the value: without devices, a copy changes nothing."""
        activation.values[step.destination] = activation.values[step.source]

    def _condition(self, slot: int, activation: Activation) -> Value:
        return activation.values[slot]

    def _put(self, block: PlanBlock, slot: int, value: Value) -> Value:  # noqa: ARG002 - runners with devices use them
        """Return a host value on the device of a slot; here the value itself."""
        return value

    def _prepare_block(self, block: PlanBlock, constants: Sequence[Array]) -> PreparedBlock:
        lists = flattened(block.steps)
        dead = _releases(lists, block.params, block.results)
        paired = tuple(tuple(zip(*both, strict=True)) for both in zip(lists, dead, strict=True))
        placed = tuple((slot, self._put(block, slot, constants[number])) for slot, number in block.constants)
        return PreparedBlock(block, paired, placed)


def _activate(
    prepared: PreparedBlock,
    arguments: Sequence[Value],
    outputs: Sequence[int],
    target: list[Value],
    release: tuple[int, ...],
) -> Activation:
    block = prepared.block
    values: list[Value] = [None] * block.slots
    for slot, argument in zip(block.params, arguments, strict=True):
        values[slot] = argument
    for slot, array in prepared.constants:
        values[slot] = array
    return Activation(prepared, prepared.lists[0], values, block.results, outputs, target, release)


def _finish(ended: Activation) -> None:
    results = [ended.values[slot] for slot in ended.results]
    for slot, value in zip(ended.outputs, results, strict=True):
        ended.target[slot] = value
    _forget(ended.target, ended.release)


def _forget(values: list[Value], release: tuple[int, ...]) -> None:
    for slot in release:
        values[slot] = None


def _is_true(cond: Value) -> bool:
    return bool(single_element(cond, "condition of a branch"))


def _releases(
    lists: Sequence[Sequence[FlatStep]], params: Sequence[int], results: Sequence[int]
) -> list[list[tuple[int, ...]]]:
    """Return, for each step of each list, the slots that are dead after it.

    A list releases only slots that it wrote, and list 0 the parameters of the block too; never its results.

    Args:
        lists: Step lists in the order of `flattened`: the lists of a branch after the list that contains it.
        params: Slots of the block's parameters.
        results: Slots of the block's results.
    """
    kept = {0: set(results)}
    for steps in lists:
        for step in steps:
            if isinstance(step, FlatBranch):
                kept[step.true_list] = set(step.true_results)
                kept[step.false_list] = set(step.false_results)
    reads: dict[int, set[int]] = {}
    releases: list[list[tuple[int, ...]]] = []
    # Backward: the lists of a branch have higher numbers, so that their reads are known at the branch.
    for number in range(len(lists) - 1, -1, -1):
        written = {slot for step in lists[number] for slot in step.outputs}
        releasable = written.union(params) if number == 0 else written
        later = kept[number]
        backwards = []
        for step in reversed(lists[number]):
            used = set(read_slots(step))
            if isinstance(step, FlatBranch):
                used |= reads.pop(step.true_list) | reads.pop(step.false_list)
            backwards.append(tuple(sorted(((used | set(step.outputs)) & releasable) - later)))
            later |= used
        reads[number] = later - written
        releases.append(backwards[::-1])
    return releases[::-1]
