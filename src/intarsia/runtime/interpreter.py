"""Running branches and calls of blocks, on a stack of its own: recursion of any depth works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.ownership import owned
from intarsia.runtime.plan import Copy, ExecutionPlan, Invoke, PlanBlock, Repeat, RunKernel
from intarsia.runtime.repetition import Repetition, single_element
from intarsia.runtime.step_lists import FlatBranch, FlatStep, flattened, read_slots


@dataclass(frozen=True, slots=True)
class PreparedBlock:
    """A block with flat step lists; every step has the slots that are dead after it."""

    block: PlanBlock
    lists: tuple[tuple[tuple[FlatStep, tuple[int, ...]], ...], ...]
    constants: tuple[tuple[int, Value], ...]


@dataclass(slots=True)
class Activation:
    """A step list that is being run, and where its results go when it ends.

    Attributes:
        prepared: The block that it belongs to.
        steps: The list.
        values: Slots of the activated block; a branch has those of the list it stands in.
        results: Slots whose values the list ends with.
        outputs: Slots in `target` that take them.
        target: Slots of the one who waits for this list.
        release: Slots of `target` that are dead then.
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

    def __init__(
        self, plan: ExecutionPlan, kernels: Sequence[NamedKernel], constants: Sequence[Array]
    ) -> None:
        self._kernels = kernels
        self._blocks: Mapping[str, PreparedBlock] = {
            name: self._prepared(block, constants) for name, block in plan.blocks.items()
        }
        self._kept = [array for block in self._blocks.values() for _, array in block.constants]

    def run(self, inputs: Sequence[Value]) -> list[Value]:
        """Results of the program; they belong to the caller."""
        return owned(self.run_into(inputs, ()), [*inputs, *self._kept])

    def run_into(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> list[Value]:
        """Results of the program, all of them still to be copied into the caller's buffers."""
        del outputs  # shapes are not known before the run
        results: list[Value] = [None] * len(self._blocks["main"].block.results)
        main = _activation(self._blocks["main"], inputs, range(len(results)), results, ())
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
                    stack.append(_activation(body, next_inputs, range(len(returned)), returned, ()))
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
                stack.append(_activation(called, arguments, step.outputs, top.values, release))
            elif isinstance(step, Repeat):
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
        found = self._kernels[step.kernel].run(arguments, [None] * len(step.outputs))
        for slot, value in zip(step.outputs, found, strict=True):
            values[slot] = value

    def _copy(self, step: Copy, activation: Activation) -> None:
        """Nothing is to be copied where there are no devices."""
        activation.values[step.destination] = activation.values[step.source]

    def _condition(self, slot: int, activation: Activation) -> Value:
        return activation.values[slot]

    def _put(self, block: PlanBlock, slot: int, value: Value) -> Value:  # noqa: ARG002 - runners with devices use them
        """A value of the host where a slot of a block wants it."""
        return value

    def _prepared(self, block: PlanBlock, constants: Sequence[Array]) -> PreparedBlock:
        lists = flattened(block.steps)
        dead = _releases(lists, block.params, block.results)
        paired = tuple(tuple(zip(*both, strict=True)) for both in zip(lists, dead, strict=True))
        placed = tuple((slot, self._put(block, slot, constants[number])) for slot, number in block.constants)
        return PreparedBlock(block, paired, placed)


def _activation(
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
    found = [ended.values[slot] for slot in ended.results]
    for slot, value in zip(ended.outputs, found, strict=True):
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
    """For each step of each list the slots that nobody reads afterwards.

    A list releases only slots that it wrote, and list 0 the parameters of the block too; never its results.

    Args:
        lists: In the order of `flattened`: those of a branch after the list it stands in.
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
    found: list[list[tuple[int, ...]]] = []
    for number in range(len(lists) - 1, -1, -1):
        written = {slot for step in lists[number] for slot in step.outputs}
        own = written.union(params) if number == 0 else written
        later = kept[number]
        backwards = []
        for step in reversed(lists[number]):
            used = set(read_slots(step))
            if isinstance(step, FlatBranch):
                used |= reads.pop(step.true_list) | reads.pop(step.false_list)
            backwards.append(tuple(sorted(((used | set(step.outputs)) & own) - later)))
            later |= used
        reads[number] = later - written
        found.append(backwards[::-1])
    return found[::-1]
