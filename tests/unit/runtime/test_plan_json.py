import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fake_kernels import f32, plan_of

from intarsia.ir import DimRange
from intarsia.ir.cache import Cache, CacheState
from intarsia.runtime.json_record import Record
from intarsia.runtime.plan import (
    Branch,
    Copy,
    ExecutionPlan,
    Invoke,
    PlanBlock,
    Repeat,
    RunKernel,
    Step,
    TensorInfo,
)
from intarsia.runtime.plan_json import plan_from_json, plan_to_json
from intarsia.runtime.step_lists import FlatBranch, nested
from intarsia.support.errors import ArtifactError

slots = st.tuples(st.integers(0, 9)) | st.tuples(st.integers(0, 9), st.integers(0, 9))
slot = st.integers(0, 9)
device = st.integers(0, 2)
axes = st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=2).map(tuple)
leaf_steps = (
    st.builds(RunKernel, st.integers(0, 3), slots, slots, device)
    | st.builds(Invoke, st.just("f"), slots, slots)
    | st.builds(Copy, slot, slot, device)
    | st.builds(Repeat, st.just("f"), slots, slots, slots, slots, slots, axes, axes, slots, slots)
)


def branches(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    lists = st.lists(inner, max_size=3).map(tuple)
    return leaf_steps | st.builds(Branch, st.integers(0, 9), lists, slots, lists, slots, slots)


steps = st.lists(st.recursive(leaf_steps, branches, max_leaves=12), max_size=4)


def through_json(plan: ExecutionPlan) -> ExecutionPlan:
    return plan_from_json(Record(json.loads(json.dumps(plan_to_json(plan))), "plan"))


@given(steps)
def test_plans_come_back_as_they_were(listed: list[Step]) -> None:
    infos = [f32("a", 4, "n", -1), TensorInfo("s", "Sequence[Tensor[?, float32]]", None), None]
    plan = plan_of(
        listed, [f32("x")], [0, 1], infos, constants=[(2, 0)], blocks={"f": PlanBlock((0,), (), (), (), 1)}
    )
    assert through_json(plan) == plan


def test_devices_come_back_and_stand_only_where_there_are_some() -> None:
    block = PlanBlock((0,), (), (Copy(0, 1, 1), RunKernel(0, (1,), (2,), 1)), (2,), 3, (0, 1, 1))
    plan = ExecutionPlan({"main": block}, (), (), 0, (), ("cpu:0", "mock:1"))
    assert through_json(plan) == plan
    without = ExecutionPlan(
        {"main": PlanBlock((0,), (), (RunKernel(0, (0,), (1,)),), (1,), 2)}, (), (), 0, ()
    )
    assert "device" not in json.dumps(plan_to_json(without))
    assert through_json(without) == without


def test_structures_come_back_as_they_were() -> None:
    plan = ExecutionPlan({}, (), (), (0, (), ((1,), 2)), ())
    assert through_json(plan) == plan


def test_nesting_deeper_than_pythons_stack(length: int) -> None:
    nest: tuple[Step, ...] = ()
    for _ in range(length):
        nest = (Branch(0, nest, (), (), (), ()),)
    (step,) = through_json(plan_of(nest, [], [], [])).blocks["main"].steps
    depth = 0
    while isinstance(step, Branch):
        depth += 1
        if not step.true_steps:
            break
        (step,) = step.true_steps
    assert depth == length


def test_a_branch_into_its_own_list_is_refused() -> None:
    with pytest.raises(ValueError, match="a branch in step list 0 refers to a list that is not after it"):
        nested([[FlatBranch(0, 0, (), 1, (), ())], []])


def test_two_branches_into_one_list_are_refused() -> None:
    with pytest.raises(ValueError, match="two branches refer to one list"):
        nested([[FlatBranch(0, 1, (), 1, (), ())], []])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": 3}, "plan.inputs is 3, expected a list"),
        ({"inputs": [{"name": "x"}]}, 'plan.inputs[0] has no "shape"'),
        ({"inputs": [{"name": "x", "dtype": "int8", "shape": [-2]}]},
         "plan.inputs[0].shape[0] is -2, expected a whole number, 0 or more"),
        ({"blocks": {"main": []}}, "plan.blocks.main is [], expected an object"),
        ({"output_structure": "x"}, 'plan.output_structure is "x", expected a list'),
    ],
)  # fmt: skip
def test_damaged_plans_are_refused(change: dict[str, object], message: str) -> None:
    record = plan_to_json(plan_of([], [f32("x")], [0], [f32("x")]))
    with pytest.raises(ArtifactError) as caught:
        plan_from_json(Record(json.loads(json.dumps(record | change)), "plan"))
    assert str(caught.value) == message


def test_ranges_of_dimensions_come_back_and_stand_only_where_there_are_some() -> None:
    plan = ExecutionPlan({}, (), (), (), (), dim_ranges={"batch": DimRange(1, 8), "seq": DimRange(0, 0)})
    assert through_json(plan) == plan
    assert "dim_ranges" not in plan_to_json(ExecutionPlan({}, (), (), (), ()))


@pytest.mark.parametrize("entry", [[2, 1], [1], ["a", 2], 3])
def test_damaged_ranges_are_refused(entry: object) -> None:
    record = {**plan_to_json(ExecutionPlan({}, (), (), (), ())), "dim_ranges": {"batch": entry}}
    with pytest.raises(ArtifactError, match="batch"):
        plan_from_json(Record(json.loads(json.dumps(record)), "plan"))


def test_a_cache_comes_back_as_it_was() -> None:
    cache = Cache((CacheState("x", "y0", 0),), (8, 16), (1,), (("x", 0),), (("y0", 0),), "", "", "")
    plan = replace(plan_of([RunKernel(0, (0,), (1,))], [f32("x")], [1], [f32("x"), f32("y")]), cache=cache)
    assert through_json(plan) == plan


def test_a_damaged_cache_is_refused() -> None:
    cache = Cache((CacheState("x", "y0", 0),), (8,), (1,), (("x", 0),), (), "", "", "")
    plan = replace(plan_of([RunKernel(0, (0,), (1,))], [f32("x")], [1], [f32("x"), f32("y")]), cache=cache)
    values = json.loads(json.dumps(plan_to_json(plan)))
    values["cache"]["states"] = [["x", "y0"]]
    with pytest.raises(ArtifactError, match="expected an input, an output and an axis"):
        plan_from_json(Record(values, "plan"))
