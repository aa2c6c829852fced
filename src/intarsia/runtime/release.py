"""Which slots hold their last value after each step, so that the interpreter lets go of dead arrays."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.runtime.step_lists import FlatBranch, FlatStep, read_slots


def releases(
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
