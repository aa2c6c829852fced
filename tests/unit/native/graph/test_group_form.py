"""Forms of grouped convolutions: which is chosen, and that all compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.programs import constant

from intarsia.build import build
from intarsia.ir import Expr, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import (
    ConvolutionAlgorithm,
    KernelDecision,
    KernelDecisions,
    PlanOptions,
    plan_region,
)
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.group_form import GroupedShape, GroupForm, best_group_form
from intarsia.native.machine.isa import Isa
from intarsia.native.te.operators.windows import Window
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.tune.kernels import kernel_groups

ISA = Isa.host()
LANES = 8


def window(taps: int) -> Window:
    return Window(20, 20, taps, 1, 1, taps // 2, taps // 2)


@pytest.mark.parametrize(
    ("groups", "read", "written", "taps", "form"),
    [
        (4, 16, 16, 3, GroupForm.MERGED),  # blocks fit
        (
            2,
            12,
            12,
            3,
            GroupForm.MERGED,
        ),  # all merged: 2, padded: 16 x 16 / (12 x 12) = 1.8 and a copy of 0.3
        (4, 20, 20, 3, GroupForm.PADDED),  # merged: 2, padded: 1.4
        (6, 28, 16, 3, GroupForm.PADDED),
        (8, 5, 5, 5, GroupForm.PADDED),  # too many to merge
        (8, 2, 2, 3, GroupForm.MERGED),  # four groups in each block; padded: 16
        (13, 2, 2, 3, None),  # nothing fits, and padding is 16 times the work
        (6, 20, 20, 1, GroupForm.TABLE),
        (6, 16, 16, 1, GroupForm.MERGED),
    ],
)
def test_the_form_with_least_work_is_chosen(
    groups: int, read: int, written: int, taps: int, form: GroupForm | None
) -> None:
    shape, given_order = GroupedShape(groups, read, written), ChannelOrder.natural(groups * read, LANES)
    assert best_group_form(shape, [window(taps)] * 2, given_order) is form


@pytest.mark.parametrize(
    ("groups", "read", "written", "form"),
    [
        (8, 3, 24, GroupForm.PLAIN),  # all multiplications count, and nothing is copied
        (8, 8, 8, GroupForm.MERGED),  # blocks fit as they are
        (4, 12, 12, GroupForm.PADDED),  # too many channels for rows of their own
        (13, 2, 2, GroupForm.PLAIN),
        (13, 1, 1, None),  # seven of eight results of a block would be nothing
    ],
)
def test_few_channels_of_a_plain_input_are_read_as_they_are(
    groups: int, read: int, written: int, form: GroupForm | None
) -> None:
    shape, natural = GroupedShape(groups, read, written), ChannelOrder.natural(groups * read, LANES)
    assert best_group_form(shape, [window(3)] * 2, natural, is_plain=True) is form
    assert best_group_form(shape, [window(3)] * 2, natural) is not GroupForm.PLAIN


@pytest.mark.parametrize(
    ("read", "extent", "taps", "form"),
    [
        (18, 20, 5, GroupForm.PLAIN),  # 24 channels in blocks, 18 in rows that cost 1.3 times as much
        (18, 10, 3, GroupForm.PLAIN),  # too few pixels for transforms
        (18, 20, 3, GroupForm.PADDED),  # Winograd's transforms are for blocks
        (18, 120, 5, GroupForm.PADDED),  # more than a cache holds
        (23, 20, 5, GroupForm.PADDED),  # hardly any zeros
    ],
)
def test_rows_of_more_channels_are_read_where_blocks_have_zeros(
    read: int, extent: int, taps: int, form: GroupForm
) -> None:
    shape, natural = GroupedShape(4, read, 24), ChannelOrder.natural(4 * read, LANES)
    windows = [Window(extent, extent, taps, 1, 1, taps // 2, taps // 2)] * 2
    assert best_group_form(shape, windows, natural, is_plain=True) is form


def test_an_order_that_is_there_already_costs_nothing() -> None:
    shape = GroupedShape(2, 12, 12)
    assert best_group_form(shape, [window(3)] * 2, shape.padded(LANES)[0]) is GroupForm.PADDED


def test_a_decision_is_followed_where_the_form_exists() -> None:
    shape, natural = GroupedShape(4, 20, 20), ChannelOrder.natural(80, LANES)
    assert best_group_form(shape, [window(3)] * 2, natural, "merged") is GroupForm.MERGED
    assert best_group_form(shape, [window(3)] * 2, natural, "table") is GroupForm.PADDED, (
        "windows leave the image"
    )
    assert best_group_form(shape, [window(1)] * 2, natural, "padded") is GroupForm.PADDED


def convolution(x: Expr, made: int, taps: int, groups: int) -> Expr:
    assert isinstance(x.checked_type, TensorType)
    shape = (made, x.checked_type.static_shape[1] // groups, taps, taps)
    weight = np.random.default_rng(made).standard_normal(shape) / (taps * shape[1] ** 0.5)
    bias = constant(np.linspace(-1, 1, made))
    return call("Relu", call("Conv", x, constant(weight), bias, pads=(taps // 2,) * 4, group=groups))


@settings(max_examples=examples(25, quick=2), deadline=None)
@given(
    groups=st.integers(2, 5),
    channels=st.tuples(st.integers(2, 20), st.integers(2, 20)),
    taps=st.sampled_from([1, 3]),
    size=st.integers(3, 9),
    form=st.sampled_from(["", *(form.value for form in GroupForm)]),
    algorithm=st.sampled_from(ConvolutionAlgorithm),
    threads=st.sampled_from([1, 2]),
)
def test_all_forms_compute_the_same(
    groups: int,
    channels: tuple[int, int],
    taps: int,
    size: int,
    form: str,
    algorithm: ConvolutionAlgorithm,
    threads: int,
) -> None:
    """Three layers: the middle one reads what another grouped convolution wrote, the last one is dense."""
    read, written = channels
    x = Var("x", checked_type=TensorType.of(np.zeros((2, groups * read, size, size + 1), np.float32)))
    first = convolution(x, groups * written, taps, groups)
    second = convolution(first, groups * read, taps, groups)
    module = IRModule({GlobalVar("main"): Function((x,), convolution(call("Add", second, x), 16, 1, 1))})
    target = Target.for_toolchain("native", threads=threads, convolutions=algorithm.value)
    keys = [group.key for group in kernel_groups(module, str(target))]
    decisions = KernelDecisions(dict.fromkeys(keys, KernelDecision(form=form)))
    target = target.with_options(decisions=str(decisions)) if form else target
    data = np.random.default_rng(0).standard_normal((2, groups * read, size, size + 1)).astype(np.float32)
    (expected,) = build(module).run_flat(data)
    (found,) = build(partition_whole(module, target)).run_flat(data)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-3, atol=2e-3)


def test_decided_forms_change_the_kernels() -> None:
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 80, 8, 8), np.float32)))
    function = Function((x,), convolution(x, 80, 3, 4))
    plan = plan_region(function, ISA)
    (key,) = {kernel.rule_group for kernel in plan.kernels if kernel.rule_group}
    merged = KernelDecisions({key: KernelDecision(form="merged")})
    names = [kernel.name for kernel in plan.kernels]
    assert [
        kernel.name for kernel in plan_region(function, ISA, PlanOptions(decisions=merged)).kernels
    ] != names
