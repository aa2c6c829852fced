from tests.device_plans import device_plan

from intarsia.build.step_order import overlapping
from intarsia.runtime.plan import Branch, Copy, PlanBlock, RunKernel, Step

NAMES = ("cpu:0", "cpu:1")


def ordered(places: list[int], steps: list[Step], results: list[int]) -> list[Step]:
    return list(overlapping(device_plan(NAMES, places, steps, results).blocks["main"]).steps)


def test_what_another_device_needs_comes_first() -> None:
    a, b = RunKernel(0, (0,), (1,)), RunKernel(0, (1,), (2,))
    c, copy, d = RunKernel(1, (0,), (3,)), Copy(3, 4, 1), RunKernel(2, (4,), (5,), 1)
    found = ordered([0, 0, 0, 0, 1, 1], [a, b, c, copy, d], [2, 5])
    assert found == [c, a, copy, b, d]


def test_the_longer_way_on_the_other_device_comes_first() -> None:
    short, long = RunKernel(0, (0,), (1,)), RunKernel(0, (0,), (2,))
    to_short, to_long = Copy(1, 3, 1), Copy(2, 4, 1)
    rest = [RunKernel(1, (4,), (5,), 1), RunKernel(1, (5,), (6,), 1)]
    found = ordered([0, 0, 0, 1, 1, 1, 1], [short, to_short, long, to_long, *rest], [3, 6])
    assert found[0] == long
    assert found.index(to_long) < found.index(to_short)


def test_on_its_own_device_all_keeps_its_order() -> None:
    chains: list[Step] = [
        RunKernel(0, (0,), (1,)),
        RunKernel(0, (1,), (2,)),
        RunKernel(0, (0,), (3,)),
        RunKernel(0, (3,), (4,)),
    ]
    other: list[Step] = [Copy(0, 5, 1), RunKernel(1, (5,), (6,), 1), RunKernel(1, (6,), (7,), 1)]
    found = ordered([0, 0, 0, 0, 0, 1, 1, 1], [*chains, *other], [2, 4, 7])
    assert [step for step in found if step in chains] == chains
    assert [step for step in found if step in other] == other


def test_blocks_with_branches_or_one_device_stay_as_they_are() -> None:
    step = RunKernel(0, (0,), (1,))
    for block in (
        PlanBlock((0,), (), (step,), (1,), 2),
        PlanBlock((0,), (), (step, Branch(0, (), (), (), (), ())), (1,), 3, (0, 0, 1)),
    ):
        assert overlapping(block) is block
