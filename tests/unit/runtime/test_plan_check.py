from dataclasses import replace

import pytest
from tests.each_case import each_case
from tests.fake_kernels import f32, plan_of

from intarsia.ir.cache import Cache, CacheState
from intarsia.runtime.plan import Branch, ExecutionPlan, Invoke, PlanBlock, Repeat, RunKernel, Step
from intarsia.runtime.plan_check import plan_complaint

X = f32("x")
F = {"f": PlanBlock((0,), (), (), (0,), 1)}


def plan(*steps: Step, results: tuple[int, ...] = (0,)) -> ExecutionPlan:
    return plan_of(steps, [X], results, [X] * 4, constants=[(3, 0)], blocks=F)


@pytest.mark.parametrize(
    "right",
    [
        plan(),
        plan(RunKernel(0, (0, 3), (1, 2)), results=(2, 2, 3)),
        plan(Invoke("f", (0,), (1,))),
        plan(Repeat("f", (), (), (), (0,), (), ((0, False),), ((0, True),), (3,), (1,))),
        plan(
            Branch(0, (RunKernel(0, (0,), (1,)),), (1,), (RunKernel(0, (0,), (1,)),), (1,), (2,)),
            results=(2,),
        ),
    ],
)
def test_plans_that_can_run(right: ExecutionPlan) -> None:
    assert plan_complaint(right, 1, 1) == ""


@each_case(
    ("wrong", "complaint"),
    [
        (plan(results=(1,)), "slot 1 is read before it is written"),
        (plan(RunKernel(1, (0,), (1,))), "it runs kernel 1; there are 1"),
        (plan(RunKernel(0, (2,), (1,))), "slot 2 is read before it is written"),
        (plan(RunKernel(0, (0,), (0,))), "slot 0 is written twice"),
        (plan(RunKernel(0, (0,), (4,))), "slot 4 is out of range; it has 4"),
        (plan(Invoke("g", (0,), (1,))), 'it calls block "g", which is not there'),
        (plan(Invoke("f", (0,), (1, 2))), 'it calls block "f" with another number of values'),
        (
            plan(Repeat("f", (0,), (3,), (0,), (), (), (), (), (), (1,))),
            'it repeats block "f" with another number of values',
        ),
        (
            plan(Repeat("f", (), (), (0,), (), (), (), (), (), (1,))),
            'it repeats block "f", but is neither a loop nor a scan',
        ),
        (
            plan(Repeat("f", (), (), (), (2,), (), ((0, False),), ((0, False),), (3,), (1,))),
            "slot 2 is read before it is written",
        ),
        (plan(Branch(1, (), (0,), (), (0,), (2,))), "slot 1 is read before it is written"),
        (plan(Branch(0, (), (0,), (), (), (2,))), "a branch has ragged results"),
        (
            plan(Branch(0, (RunKernel(0, (0,), (1,)),), (1,), (), (1,), (2,))),
            "slot 1 is read before it is written",
        ),
        (
            plan(Branch(0, (RunKernel(0, (2,), (1,)),), (1,), (), (0,), (2,))),
            "slot 2 is read before it is written",
        ),
        (
            plan(Branch(0, (RunKernel(0, (0,), (1,)),), (1,), (), (0,), (2,)), results=(1,)),
            "slot 1 is read before it is written",
        ),
    ],
)
def test_plans_that_cannot(wrong: ExecutionPlan, complaint: str) -> None:
    assert plan_complaint(wrong, 1, 1) == f'block "main": {complaint}'


def test_what_is_wrong_outside_of_blocks() -> None:
    right = plan()
    assert plan_complaint(replace(right, blocks={}), 1, 1) == 'the plan has no block "main"'
    assert (
        plan_complaint(replace(right, inputs=()), 1, 1)
        == 'block "main" does not take and return what the plan says'
    )
    assert plan_complaint(replace(right, slot_types=()), 1, 1) == "the plan has 0 slot types, expected 4"
    assert plan_complaint(replace(right, output_structure=(0, 1)), 1, 1) == (
        "the output structure refers to an output that is not there"
    )
    assert plan_complaint(right, 1, 0) == (
        'block "main": it names a constant that is not there; the plan has 0'
    )


CACHE = Cache((CacheState("x", "y0", 0),), (4, 8), (1,), (("x", 0),), (("y0", 0),), "", "", "x")


def test_a_cache_that_fits() -> None:
    cached = replace(plan_of([], [f32("x", 4)], [0], [f32("x", 4)]), cache=CACHE)
    assert plan_complaint(cached, 0, 0) == ""


@each_case(
    ("cache", "complaint"),
    [
        (replace(CACHE, states=()), "its cache has no states, capacities or inputs of tokens"),
        (replace(CACHE, capacities=(8, 4)), "its cache has sizes that are not ascending"),
        (replace(CACHE, chunks=(0, 1)), "its cache has sizes that are not ascending"),
        (
            replace(CACHE, states=(CacheState("y0", "y0", 0),)),
            'its cache uses axis 0 of "y0", which is not there',
        ),
        (
            replace(CACHE, states=(CacheState("x", "y0", 1),)),
            'its cache uses axis 1 of "x", which is not there',
        ),
        (replace(CACHE, token_outputs=(("x", 0),)), 'its cache uses axis 0 of "x", which is not there'),
        (replace(CACHE, mask="x"), 'its cache uses axis 1 of "x", which is not there'),
    ],
)
def test_caches_that_do_not_fit(cache: Cache, complaint: str) -> None:
    cached = replace(plan_of([], [f32("x", 4)], [0], [f32("x", 4)]), cache=cache)
    assert plan_complaint(cached, 0, 0) == complaint
