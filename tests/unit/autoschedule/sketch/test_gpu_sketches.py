"""Sketches for GPUs: what is bound, fetched together, reduced together, and tensorised."""

from random import Random

from tests.gpu_schedules import batched_product, chain, check_schedule, gpu_task, padded_sums, reduction
from tests.native_workloads import conv2d_nchw_bn_relu, conv2d_winograd_nhwc, layer_norm, matmul, softmax_nm

from intarsia.autoschedule.population import sample_program
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.sketch.tile_splits import spatial_tile_splits
from intarsia.autoschedule.task import SpaceOptions
from intarsia.ir import DType
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import Mma
from intarsia.native.loop_state import ComputeAt, IteratorAnnotation, LoopState
from intarsia.native.loop_state.steps import SplitStep


def annotations(state: LoopState, name: str) -> list[str]:
    return [loop.annotation.keyword for loop in state[name].iters]


def test_a_product_has_blocks_virtual_threads_threads_and_two_shared_tiles() -> None:
    *_, sketch = generate_sketches(gpu_task(matmul(64, 64, 64)))
    assert annotations(sketch, "C")[:3] == ["blockIdx.x", "vthread", "threadIdx.x"]
    inside = {sketch.stages[stage].op.name: place for stage, place in sketch.attach_map.positions.items()}
    sums = sketch.stage_id("C.local")
    assert inside["C.local"] == (sketch.stage_id("C"), 2)
    assert inside["A.shared"] == inside["B.shared"]
    target, loop = inside["A.shared"]
    assert target == sums
    assert sketch.stages[sums].iters[loop].name == "k.0"
    assert annotations(sketch, "A.shared") == ["for", "threadIdx.x", "vectorize"]


def test_the_splits_of_a_stage_are_found_whatever_stages_came_later() -> None:
    *_, sketch = generate_sketches(gpu_task(matmul(64, 64, 64)))
    numbers = spatial_tile_splits(sketch, sketch.stage_id("C.local"))
    steps = [sketch.transform_steps[number] for number in numbers]
    assert [step.extent for step in steps if isinstance(step, SplitStep)] == [64, 64]
    assert spatial_tile_splits(sketch, sketch.stage_id("A")) == ()


def test_an_elementwise_end_is_computed_from_registers_and_a_padded_input_in_shared_memory() -> None:
    (sketch,) = generate_sketches(gpu_task(conv2d_nchw_bn_relu(1, 8, 8, 4, 4)))
    names = [stage.op.name for stage in sketch.stages]
    assert "conv.local" not in names
    assert sketch.attach_map.positions[sketch.stage_id("conv")] == (sketch.stage_id("relu"), 2)
    copies = [name for name in names if name.endswith(".shared")]
    assert len(copies) == 2
    (padded,) = (name.removesuffix(".shared") for name in copies if name != "kernel.shared")
    for name in ("bias_add", "bn_mul", "bn_add", padded):
        assert sketch[name].compute_at is ComputeAt.INLINED


def test_long_reductions_have_two_sketches_and_short_ones_have_one() -> None:
    first, second = generate_sketches(gpu_task(reduction((4, 500), 1)))
    assert "Y.rf" in [stage.op.name for stage in first.stages]
    assert "Y.rf" not in [stage.op.name for stage in second.stages]
    assert len(generate_sketches(gpu_task(reduction((4, 20), 1)))) == 1
    # Three reductions of rows, of which the maximum and the sum are long: each may be shared or not.
    assert len(generate_sketches(gpu_task(softmax_nm(4, 100)))) == 4
    assert len(generate_sketches(gpu_task(layer_norm(4, 100)))) == 4


def test_the_reader_of_a_shared_reduction_is_computed_from_its_sum() -> None:
    sketches = generate_sketches(gpu_task(padded_sums(2, 200, 70)))
    shared = next(sketch for sketch in sketches if "sums.rf" in [stage.op.name for stage in sketch.stages])
    assert shared.attach_map.positions[shared.stage_id("sums")] == (shared.stage_id("Y"), 1)


def test_a_product_of_halves_has_a_sketch_on_tensor_cores_with_what_follows() -> None:
    task = gpu_task(batched_product((), 16, 16, 16, DType.FLOAT16, "relu"))
    tensorised, *others = generate_sketches(task)
    marked = [loop for loop in tensorised["C"].iters if loop.annotation is IteratorAnnotation.TENSORIZE]
    assert len(marked) == 3
    assert others
    state = sample_program(task, tensorised, Random(1), SpaceOptions())
    assert state is not None
    function = check_schedule(task, state, is_compiled=False)
    assert any(isinstance(visit.statement, Mma) for visit in walk(function.body))
    assert not any("tensorize" in str(sketch) for sketch in others)


def test_a_product_of_float32_has_none_on_tensor_cores() -> None:
    sketches = generate_sketches(gpu_task(batched_product((), 64, 64, 64)))
    assert not any("tensorize" in str(sketch) for sketch in sketches)


def test_elementwise_stages_are_one_kernel_whose_threads_have_neighbours() -> None:
    (sketch,) = generate_sketches(gpu_task(chain((8, 8))))
    assert sketch["total"].compute_at is sketch["powers"].compute_at is ComputeAt.INLINED
    assert annotations(sketch, "Z") == ["blockIdx.x", "threadIdx.x", "vectorize"]


def test_axes_of_constant_tensors_are_unrolled_in_each_thread() -> None:
    sketch = generate_sketches(gpu_task(conv2d_winograd_nhwc()))[0]
    assert annotations(sketch, "data_pack") == ["blockIdx.x", "threadIdx.x", *["unroll"] * 4]
