"""Layouts: what is blocked, where layouts change, and that results do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import x86_sets
from tests.emulated_cpus import CPUS
from tests.unit.native.graph.programs import constant, ints
from tests.unit.native.graph.run_plan import Array, run_plan

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import Expr, Function, GlobalVar, IRModule, TensorType, Tuple, Var
from intarsia.native.graph import PlanOptions, RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call
from intarsia.passes import default_heuristic
from intarsia.transform import PassContext

pytestmark = pytest.mark.quick_tests(
    5, also=["test_shuffled_channels_that_are_read_in_other_shapes_are_copied"]
)

ISA = Isa.host()
SETS = sorted(x86_sets().items())


def weights(*shape: int) -> Expr:
    """Weights that differ, and sum up to little."""
    return constant(np.sin(np.arange(np.prod(shape)) * 1.7).reshape(shape) / 4)


def convolution(x: Expr, made: int, taps: int = 1, groups: int = 1, *, bias: bool = True) -> Expr:
    """A convolution that keeps the spatial dimensions."""
    assert isinstance(x.checked_type, TensorType)
    channels = x.checked_type.static_shape[1]
    args = [x, weights(made, channels // groups, taps, taps)]
    return call("Conv", *args, *([weights(made)] if bias else []), pads=(taps // 2,) * 4, group=groups)


def image(channels: int, size: int = 6, batch: int = 1) -> Var:
    """A parameter."""
    return Var("x", checked_type=TensorType.of(np.zeros((batch, channels, size, size), np.float32)))


def checked(x: Var, *results: Expr, isa: Isa = ISA) -> RegionPlan:
    """The plan of a function of one parameter, after its results were compared with the reference's."""
    module = IRModule({GlobalVar("main"): Function((x,), Tuple(results))})
    function = module["main"]
    assert isinstance(function, Function)
    assert isinstance(x.checked_type, TensorType)
    given = np.random.default_rng(0).standard_normal(x.checked_type.static_shape).astype(np.float32)
    expected = [np.asarray(value) for value in build(module).run_flat(given)]
    plan = plan_region(function, isa)
    others = (PlanOptions(blocked=False), PlanOptions(fused=False))
    for each in (plan, *(plan_region(function, isa, options) for options in others)):
        _compare(run_plan(each, [given], isa), expected)
    return plan


def _compare(found: Sequence[Array], expected: Sequence[Array]) -> None:
    assert [each.shape for each in found] == [each.shape for each in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def operators(plan: RegionPlan) -> list[str]:
    """The operators of each kernel."""
    return [kernel.name.rpartition("_")[0] for kernel in plan.kernels]


def blocked_kernels(plan: RegionPlan) -> list[bool]:
    """Whether each kernel writes blocks."""
    return [any(plan.values[number].lanes for number in kernel.outputs) for kernel in plan.kernels]


@pytest.mark.parametrize("isa", [isa for _, isa in SETS], ids=[name for name, _ in SETS])
def test_a_network_has_no_copies_between_its_kernels(isa: Isa) -> None:
    lanes = isa.vector_bytes // 4
    x = image(3, 9)
    stem = call("Relu", convolution(x, lanes * 2, 3))
    left = call("Relu", convolution(call("MaxPool", stem, kernel_shape=(2, 2)), lanes, 3))
    right = call("Sigmoid", convolution(call("AveragePool", stem, kernel_shape=(2, 2)), lanes, bias=False))
    total = call("Relu", call("Add", left, right))
    deep = call("Clip", convolution(total, lanes, 3, groups=lanes), constant(0.0), constant(6.0))
    pooled = call("Flatten", call("GlobalAveragePool", call("Concat", total, deep, axis=1)))
    plan = checked(x, call("MatMul", pooled, weights(2 * lanes, 5)), isa=isa)
    # Which algorithm the small convolution takes depends on the machine.
    assert [name.partition("_winograd")[0] for name in operators(plan)] == [
        *("conv_relu", "maxpool", "conv_relu", "averagepool", "conv_sigmoid_add_relu", "conv_clip"),
        *("globalaveragepool", "matmul"),
    ]
    assert blocked_kernels(plan) == [True] * 7 + [False]


def test_a_result_is_copied_from_blocks_and_a_parameter_into_them() -> None:
    x = image(24)
    plan = checked(x, call("Tanh", convolution(x, 24, 3)))
    assert operators(plan) == ["to_blocked", "conv_tanh", "from_blocked"]
    assert plan.written_results == {plan.results[0]: 0}


@pytest.mark.parametrize("isa", [isa for _, isa in SETS], ids=[name for name, _ in SETS])
def test_blocks_of_groups_are_copied_by_tiles(isa: Isa) -> None:
    """Each group begins with a block, so that no table of channels is needed."""
    x = image(2 * 20, size=9, batch=2)
    plan = checked(x, call("Tanh", convolution(x, 2 * 41, 3, groups=2)), isa=isa)
    assert operators(plan)[-1] == "from_blocked"
    assert [tensor.shape[0] for tensor in plan.kernels[-1].dag.placeholders] == [
        4
    ]  # the groups of both images


def test_what_cannot_read_blocks_reads_one_plain_copy() -> None:
    x = image(3)
    made = call("Relu", convolution(x, 40, 3))
    rows = call("Softmax", made, axis=-1)
    columns = call("ReduceSum", call("Reshape", made, ints(40, 36)), ints(1))
    again = convolution(made, 16)
    plan = checked(x, rows, columns, again)
    assert operators(plan).count("from_blocked") == 2  # of `made` and of the last result


def test_few_channels_stay_plain() -> None:
    x = image(3)
    plan = checked(x, convolution(x, 1, 3))
    assert operators(plan) == ["conv"]


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("channels", [(16, 32), (16, 24), (24, 16)])
def test_concat_of_blocks(channels: tuple[int, int], batch: int) -> None:
    x = image(3, batch=batch)
    parts = [call("Relu", convolution(x, made)) for made in channels]
    joined = call("Concat", *parts, axis=1)
    plan = checked(x, call("MaxPool", convolution(joined, 16), kernel_shape=(2, 2)))
    assert ("concat" in operators(plan)) is (batch > 1)


def test_a_squeezed_gate_is_stretched_over_blocks() -> None:
    x = image(3)
    made = call("Relu", convolution(x, 32, 3))
    gate = call("Relu", convolution(call("GlobalAveragePool", made), 16))
    gate = call("Sigmoid", convolution(gate, 32))
    mask = call("Sigmoid", call("ReduceMean", made, ints(1), keepdims=1))
    plan = checked(x, call("Mul", call("Mul", made, gate), mask), gate)
    assert operators(plan).count("to_blocked") == 0


@pytest.mark.parametrize(
    ("made", "groups", "is_blocked"), [(24, 2, True), (72, 4, True), (65, 13, True), (26, 13, False)]
)
def test_groups_that_blocks_do_not_fit_are_merged_or_padded_unless_that_wastes_too_much(
    made: int, groups: int, is_blocked: bool
) -> None:
    x = image(3, size=3)  # rows are too short for kernels of plain tensors
    plan = checked(x, convolution(convolution(x, made), made, 3, groups))
    assert blocked_kernels(plan)[operators(plan).index("conv", 1)] is is_blocked


def shuffled(x: Expr, groups: int) -> Expr:
    """Channels dealt out to groups, as ShuffleNet has it."""
    assert isinstance(x.checked_type, TensorType)
    batch, channels, *spatial = x.checked_type.static_shape
    cut = call("Reshape", x, ints(batch, groups, channels // groups, *spatial))
    return call("Reshape", call("Transpose", cut, perm=(0, 2, 1, 3, 4)), ints(batch, channels, *spatial))


@pytest.mark.slow
@pytest.mark.parametrize("isa", [isa for _, isa in SETS], ids=[name for name, _ in SETS])
@pytest.mark.parametrize(("channels", "groups", "batch"), [(136, 4, 1), (24, 2, 2), (96, 3, 1), (60, 4, 1)])
def test_shuffled_channels_are_another_name_for_the_same_memory(
    channels: int, groups: int, batch: int, isa: Isa
) -> None:
    x = image(3, batch=batch)
    stem = convolution(x, channels, 3)
    first = shuffled(call("Relu", convolution(stem, channels, 1, groups)), groups)
    middle = convolution(first, channels, 3, channels)
    last = convolution(middle, channels, 1, groups)
    added = call("Relu", call("Add", last, stem))
    again = convolution(shuffled(convolution(added, channels, 1, groups), groups), 16)
    plan = checked(x, call("GlobalAveragePool", again), isa=isa)
    found = operators(plan)
    assert "transpose" not in found
    assert found.count("from_blocked") == (
        plan.values[plan.results[0]].type.static_shape[1] % (isa.vector_bytes // 4) > 0
    )
    assert found.count("reordered_blocks") <= 1  # of the residual


def test_shuffled_channels_that_are_read_in_other_shapes_are_copied() -> None:
    x = image(3)
    made = convolution(x, 32)
    cut = call("Reshape", made, ints(1, 2, 16, 6, 6))
    moved = call("Transpose", cut, perm=(0, 2, 1, 3, 4))
    plan = checked(x, call("Softmax", moved, axis=1), shuffled(call("Neg", x), 3), shuffled(made, 4))
    assert operators(plan).count("transpose") == 1


def test_parts_of_a_concat_keep_their_own_order() -> None:
    x = image(3)
    stem = convolution(x, 24)
    left = convolution(call("Relu", stem), 40, 1, 4)
    right = call("AveragePool", stem, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    joined = call("Relu", call("Concat", left, right, axis=1))
    plan = checked(x, convolution(joined, 64, 1, 4), call("Mul", joined, joined))
    assert "concat" not in operators(plan)


@pytest.mark.slow
def test_weights_are_packed_and_biases_fill_whole_blocks() -> None:
    x = image(3)
    plan = checked(x, call("MaxPool", convolution(x, 20, 3), kernel_shape=(2, 2)))
    first, lanes = plan.kernels[0], ISA.vector_bytes // 4
    shapes = sorted(each.shape for each in first.constants.values())
    blocks = -(-20 // lanes)
    assert shapes == sorted([(blocks, lanes), (blocks, 3, 3, 3, lanes)])


@pytest.mark.slow
@given(
    st.sampled_from([1, 3, 8, 16, 20, 48]),
    st.sampled_from([(8, 1), (16, 1), (48, 1), (48, 2), (48, 4), (20, 1), (96, 3)]),
    st.sampled_from([1, 3]),
    st.sampled_from(["Relu", "MaxPool", "AveragePool", "GlobalMaxPool", "Mul", "Softmax", "Transpose"]),
    st.integers(1, 2),
)
@settings(max_examples=examples(25), deadline=None)
def test_chains_of_convolutions(
    channels: int, second: tuple[int, int], taps: int, between: str, batch: int
) -> None:
    made, groups = second
    x = image(channels, 5, batch)
    inner = convolution(x, 48, taps)
    match between:
        case "MaxPool" | "AveragePool":
            inner = call(between, inner, kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
        case "Mul":
            inner = call("Mul", inner, call("HardSigmoid", inner))
        case "Softmax":
            inner = call("Softmax", inner, axis=1)
        case "Transpose":
            inner = call("Transpose", inner, perm=(0, 1, 3, 2))
        case _:
            inner = call(between, inner)
    checked(x, convolution(inner, made, 3, groups))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2"])
def test_a_network_of_convolutions_is_blocked_as_a_whole(name: str) -> None:
    module = default_heuristic()(from_onnx(build_model(name, 0)), PassContext())
    function = module["main"]
    assert isinstance(function, Function)
    plan = plan_region(function, ISA)
    assert not any(each.endswith("_blocked") for each in operators(plan))
    assert blocked_kernels(plan).count(False) <= 2  # the product at the end, and its softmax


def _strided(x: Expr, made: int, taps: int) -> Expr:
    """A convolution with stride 2 and padding, which no transform computes."""
    assert isinstance(x.checked_type, TensorType)
    _, channels, *spatial = x.checked_type.static_shape
    rank = len(spatial)
    weight = weights(made, channels, *(taps for _ in spatial))
    return call("Conv", x, weight, pads=(taps // 2,) * 2 * rank, strides=(2,) * rank)


@pytest.mark.parametrize(
    ("channels", "cpu", "expected"),
    [
        (24, "znver4", (3, 8)),
        (20, "znver4", (5, 4)),
        (40, "znver4", (5, 8)),
        (60, "znver4", (4, 16)),  # 15 blocks of 4 would save a sixteenth
        (12, "znver4", (1, 12)),  # one block has no zeros
        (20, "haswell", (5, 4)),
        (24, "haswell", (3, 8)),
    ],
)
def test_a_padded_copy_has_blocks_that_its_channels_fill(
    channels: int, cpu: str, expected: tuple[int, int]
) -> None:
    x = image(channels)
    plan = plan_region(Function((x,), _strided(x, 32, 5)), CPUS[cpu])
    (dag,) = (kernel.dag for kernel in plan.kernels if "conv" in kernel.name)
    (pad,) = (op for op in dag.ops if op.name.endswith(".pad"))
    assert (pad.buffers[0].shape[1], pad.buffers[0].shape[-1]) == (expected if channels > 16 else (1, 16))
    (packed,) = (tensor for tensor in dag.placeholders if tensor.op.attrs.get("constant"))
    assert (packed.shape[1], packed.shape[-2]) == expected


@pytest.mark.parametrize("isa", [isa for _, isa in SETS], ids=[name for name, _ in SETS])
@pytest.mark.parametrize("channels", [20, 24, 40])
def test_convolutions_of_copies_in_smaller_blocks(channels: int, isa: Isa) -> None:
    x = image(channels, 9, 2)
    checked(x, _strided(x, 24, 5), isa=isa)


@pytest.mark.slow
@settings(max_examples=examples(10), deadline=None)
@given(st.integers(9, 70), st.integers(8, 40), st.sampled_from((3, 5, 7)), st.integers(1, 3))
def test_random_channels_of_padded_convolutions(channels: int, made: int, taps: int, rank: int) -> None:
    shape = (1, channels, *(9, 6, 5)[:rank])
    x = Var("x", checked_type=TensorType.of(np.zeros(shape, np.float32)))
    checked(x, _strided(x, made, taps))
