from dataclasses import replace

import pytest
from tests.device_plans import device_plan

from intarsia.runtime.plan import Branch, Copy, ExecutionPlan, Invoke, PlanBlock, RunKernel, Step
from intarsia.runtime.plan_check import plan_complaint

NAMES = ("cpu:0", "mock:1")
CALLED = PlanBlock((0,), (), (), (0,), 1, (1,))
TWICE: list[Step] = [RunKernel(0, (0,), (1,)), Copy(1, 2, 1), RunKernel(0, (2,), (3,), 1)]
BRANCH = Branch(0, (), (0,), (Copy(0, 1, 1),), (1,), (2,))


def plan_with(places: list[int], *steps: Step, result: int = 0) -> ExecutionPlan:
    return device_plan(NAMES, places, steps, [result], blocks={"f": CALLED})


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [
        (
            plan_with([0, 1], RunKernel(0, (0,), (1,))),
            'block "main": kernel 0 uses slot 1 of another device',
        ),
        (
            plan_with([0, 1], RunKernel(0, (0,), (1,), 1)),
            'block "main": kernel 0 uses slot 0 of another device',
        ),
        (plan_with([0, 0], Copy(0, 1, 0)), 'block "main": slot 0 is copied to the device it is on'),
        (plan_with([0, 0], Copy(0, 1, 1)), 'block "main": slot 1 is not on the device that it is copied to'),
        (plan_with([0, 0, 1, 1], *TWICE), 'block "main": kernel 0 is run on two devices'),
        (
            plan_with([0, 2], RunKernel(0, (0,), (1,))),
            'block "main": it names a device that is not there; there are 2',
        ),
        (
            plan_with([0, 1], Invoke("f", (0,), (1,))),
            'block "main": it passes values to block "f" on other devices',
        ),
        (
            plan_with([0, 1, 1], BRANCH),
            'block "main": the results of a branch are on other devices than its outputs',
        ),
        (replace(plan_with([0]), devices=("cpu:0", "cpu:0")), "it lists a device twice"),
        (
            replace(plan_with([0]), devices=("cpu:0", "cpu")),
            "'cpu' is not a device; expected a kind and a number, such as \"cpu:0\"",
        ),
        (replace(plan_with([0]), devices=()), 'block "main": it has the devices of 1 slots, expected 0'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_with_the_devices_of_a_plan(plan: ExecutionPlan, complaint: str) -> None:
    assert plan_complaint(plan, 2, 0) == complaint


def test_a_copy_in_a_plan_without_devices() -> None:
    plan = plan_with([0, 0], Copy(0, 1, 0))
    blocks = {"main": replace(plan.blocks["main"], slot_devices=())}
    found = plan_complaint(replace(plan, devices=(), blocks=blocks), 0, 0)
    assert found == 'block "main": it has a copy, but the plan has no devices'


def test_calls_and_branches_that_are_right() -> None:
    steps: list[Step] = [Copy(0, 1, 1), Invoke("f", (1,), (2,)), Branch(0, (), (1,), (), (2,), (3,))]
    assert plan_complaint(plan_with([0, 1, 1, 1], *steps, result=3), 0, 0) == ""
