import pytest
from tests import native_workloads as workloads
from tests.searched_programs import task_of

from intarsia.autoschedule.sketch import Condition, CustomSketchRule, SketchContext, generate_sketches
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.steps import FollowSplitStep, SplitStep

CODES: dict[str, tuple[workloads.Tensors, tuple[str, ...]]] = {
    "matmul": (workloads.matmul(512, 512, 512), ("tile", "fuse1", "fuse2")),
    "matmul_8_8_512": (workloads.matmul(8, 8, 512), ("rf_outer", "rf_inner", "tile", "fuse1", "fuse2")),
    "conv2d_bn_relu": (
        workloads.conv2d_nchw_bn_relu(1, 56, 56, 512, 512, 3, 1, 1),
        ("fuse1", "fuse2", "tile"),
    ),
    "max_pool2d": (workloads.max_pool2d(1, 56, 56, 512, 1), ("none",)),
    "min_nm": (workloads.min_nm(10, 1024), ("rf_outer", "rf_inner", "none")),
    "scalar_sum": (workloads.zero_rank_reduce(128), ("rf_outer", "rf_inner", "none")),
}
"""Computations with a single stage that is changed, and what is done to it, in order."""

EXPECTED_FUSED = """\
Placeholder: A, B
for i.0 (None)
  for j.0 (None)
    for i_c.0 (None)
      for j_c.0 (None)
        for i_c.1 (None)
          for j_c.1 (None)
            for k.0 (None)
              for i_c.2 (None)
                for j_c.2 (None)
                  for k.1 (None)
                    for i_c.3 (None)
                      for j_c.3 (None)
                        C.local = ...
    for i.1 (None)
      for j.1 (None)
        C = ...
"""


def sketches_of(tensors: workloads.Tensors) -> tuple[LoopState, ...]:
    return generate_sketches(task_of(tensors))


def kind(sketch: LoopState) -> str:
    """What was done to the stages of a sketch, but for inlining."""
    codes = [step.code for step in sketch.transform_steps if step.code != "CI"]
    if "CA" in codes:
        (levels,) = {step.n_split for step in sketch.transform_steps if isinstance(step, FollowSplitStep)}
        return f"fuse{levels}"
    if "RF" in codes:
        return "rf_inner" if codes[-1] == "RE" else "rf_outer"
    return "tile" if "SP" in codes else "cached" if "CHW" in codes else "none"


@pytest.mark.parametrize("name", CODES)
def test_sketches_come_in_order(name: str) -> None:
    tensors, expected = CODES[name]
    assert tuple(map(kind, sketches_of(tensors))) == expected


@pytest.mark.parametrize(
    ("tensors", "count"),
    [
        (workloads.double_matmul(512), 9),
        (workloads.softmax_nm(36, 1024), 9),
        (workloads.conv2d_winograd_nhwc(1, 28, 28, 128, 128), 3),
    ],
)
def test_choices_of_several_stages_multiply(tensors: workloads.Tensors, count: int) -> None:
    assert len(sketches_of(tensors)) == count


def test_the_last_sketch_of_softmax_changes_nothing() -> None:
    sketches = sketches_of(workloads.softmax_nm(36, 1024))
    assert sketches[-1].transform_steps == ()
    assert all(sketch.transform_steps for sketch in sketches[:-1])


def test_the_fused_sketch_of_a_product_prints_as_in_the_field() -> None:
    assert str(sketches_of(workloads.matmul(512, 512, 512))[1]) == EXPECTED_FUSED


def test_elementwise_stages_are_inlined_and_padding_is_not() -> None:
    sketch = sketches_of(CODES["conv2d_bn_relu"][0])[0]
    inlined = [step.stage_id for step in sketch.transform_steps if step.code == "CI"]
    assert [sketch.initial_dag.ops[each].name for each in inlined] == ["bn_add", "bn_mul", "bias_add"]


def test_the_split_before_a_reduction_in_parts_stays_open() -> None:
    outer, inner, *_ = sketches_of(workloads.matmul(8, 8, 512))
    for sketch in (outer, inner):
        split = sketch.transform_steps[0]
        assert isinstance(split, SplitStep)
        assert (split.extent, split.lengths) == (512, (None,))
        assert not sketch.concrete
    assert [loop.name for loop in inner.stages[2].iters] == ["i", "j", "k_0", "k_1"]
    assert [loop.name for loop in outer.stages[2].iters] == ["i", "j", "k_0", "k_1"]


def test_all_reduction_loops_are_one_before_they_are_parts() -> None:
    sketch = sketches_of(workloads.conv2d_nchw_bn_relu(1, 1, 1, 64, 4, 3, 1, 1))[0]
    codes = [step.code for step in sketch.transform_steps]
    assert codes[codes.index("RF") - 2 :] == ["FU", "SP", "RF"]


def test_a_custom_rule_comes_first_and_may_end_a_sketch() -> None:
    def meets(context: SketchContext, state: LoopState, stage_id: int) -> int:
        return 2

    def apply(context: SketchContext, state: LoopState, stage_id: int) -> list[tuple[LoopState, int]]:
        if stage_id != 2:
            return []
        return [(state, -1), (state.split("C", "i", [8]), -1)]

    task = task_of(workloads.matmul(512, 512, 512))
    found = generate_sketches(task, custom=(CustomSketchRule(meets, apply),))
    assert [len(sketch.transform_steps) for sketch in found] == [0, 1]


def test_a_custom_rule_that_only_applies_leaves_the_others() -> None:
    def meets(context: SketchContext, state: LoopState, stage_id: int) -> Condition:
        return Condition.APPLY if stage_id == 2 else Condition.PASS

    def apply(context: SketchContext, state: LoopState, stage_id: int) -> list[tuple[LoopState, int]]:
        return [(state, stage_id - 1)]

    task = task_of(workloads.matmul(512, 512, 512))
    found = generate_sketches(task, custom=(CustomSketchRule(meets, apply),))
    assert list(map(kind, found)) == ["none", "tile", "cached", "fuse1", "fuse2"]


def test_another_structure_gives_other_levels() -> None:
    (tiled, *_) = generate_sketches(task_of(workloads.matmul(64, 64, 64)), structure="SRS")
    assert [loop.name for loop in tiled.stages[2].iters] == ["i.0", "j.0", "k", "i.1", "j.1"]


def test_sketches_are_the_same_each_time() -> None:
    tensors = workloads.conv2d_winograd_nhwc(1, 28, 28, 8, 8)
    first, second = (generate_sketches(task_of(ComputeDAG(tensors).tensors)) for _ in range(2))
    assert [each.transform_steps for each in first] == [each.transform_steps for each in second]
