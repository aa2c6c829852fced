"""Cases that the counts of sketches do not tell."""

from tests.native_workloads import conv2d_winograd_nhwc, matmul
from tests.properties.lowering_programs import running_sum
from tests.searched_programs import task_of

from intarsia.autoschedule.population import replay_program
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.sketch.stage_facts import elementwise_consumer, is_cache_stage
from intarsia.native import te
from intarsia.native.loop_state import ComputeAt, IteratorAnnotation, LoopState


def test_a_result_that_is_read_is_neither_inlined_nor_moved() -> None:
    a, b, c = matmul(64, 64, 64)
    d = te.compute((64, 64), lambda i, j: c[i, j] + 1.0, name="D")
    e = te.compute((64, 64), lambda i, j: d[i, j] * 2.0, name="E")
    for sketch in generate_sketches(task_of((a, b, c, d, e))):
        assert sketch["C"].compute_at is sketch["D"].compute_at is ComputeAt.ROOT


def test_a_reader_with_tiles_of_its_own_is_not_followed() -> None:
    """Its loops are not those of the stage any more; C is computed inside D where D has no tiles."""
    a, b, c = matmul(64, 64, 64)
    x, y = te.placeholder((64,), name="x"), te.placeholder((64,), name="y")
    outer = te.compute((64, 64), lambda i, j: c[i, j] + x[i] * y[j], name="D")
    found = []
    for sketch in generate_sketches(task_of((a, b, x, y, outer))):
        names = {stage.op.name: place for place, stage in enumerate(sketch.stages)}
        inside = {stage: target for stage, (target, _) in sketch.attach_map.positions.items()}
        assert all(inside.get(names[name]) == names["C"] for name in names if name == "C.local")
        found.append(("D.local" in names, inside.get(names["C"]) == names["D"], "C.local" in names))
    tiled, cached = (False, False), (True, False, False)
    assert found == [(*tiled, False), (True, True, False), (True, True, False), cached, *[(*tiled, True)] * 2]


def test_what_a_statement_of_its_own_reads_is_not_inlined() -> None:
    (sketch,) = generate_sketches(task_of(running_sum()))
    assert sketch["twice"].compute_at is ComputeAt.ROOT


def test_axes_of_constant_tensors_are_unrolled_inside_two_levels_of_tiles() -> None:
    sketch = generate_sketches(task_of(conv2d_winograd_nhwc(1, 28, 28, 128, 128)))[0]
    loops = sketch["data_pack"].iters
    assert [loop.name for loop in loops] == ["p.0", "ci.0", "p.1", "ci.1", "eps", "nu", "r_a", "r_b"]
    unrolled = [loop.name for loop in loops if loop.annotation is IteratorAnnotation.UNROLL]
    assert unrolled == ["eps", "nu", "r_a", "r_b"]


def test_axes_that_are_not_to_be_split_stay_whole_in_the_innermost_level() -> None:
    a, b = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis(8, "k")
    c = te.compute(
        (8, 8),
        lambda i, j: te.sum(a[i, k] * b[k, j], axis=k),
        name="C",
        attrs={"auto_scheduler_no_split_at_inner": ("j",)},
    )
    task = task_of((a, b, c))
    *_, tiled, first, second = generate_sketches(task)
    assert [loop.name for loop in tiled["C"].iters] == ["i.0", "i.1", "k.0", "i.2", "k.1", "j", "i.3"]
    for sketch, place in ((first, 0), (second, 1)):
        assert sketch.attach_map.positions == {2: (3, place)}
        assert sketch["C"].iters[-1].name == "j"


def test_a_cache_stage_is_told_from_its_copy_whatever_stages_come_in() -> None:
    state = LoopState.initial(task_of(matmul(64, 64, 64)).dag).cache_write("C", "local")
    assert [is_cache_stage(state, each) for each in range(4)] == [False, False, True, False]
    assert elementwise_consumer(state, 2) == 3
    shifted = state.cache_read("A", "shared", ["C.local"])
    assert [is_cache_stage(shifted, each) for each in range(5)] == [False, False, False, True, False]


def test_no_program_comes_of_a_sketch_with_open_lengths() -> None:
    task = task_of(matmul(64, 64, 64))
    assert replay_program(task.dag, generate_sketches(task)[0].transform_steps) is None
