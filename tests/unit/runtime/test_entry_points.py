"""Calls with the sizes of a variant run its block, all others run the main block."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.each_case import each_case
from tests.fake_kernels import FakeKernel, FakeToolchain, f32, fake, plan_of

from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.json_record import Record
from intarsia.runtime.kernel import Array
from intarsia.runtime.plan import ExecutionPlan, PlanBlock, PlanVariant, RunKernel
from intarsia.runtime.plan_check import plan_complaint
from intarsia.runtime.plan_json import plan_from_json, plan_to_json

BLOCKS = {
    "two": PlanBlock((0, 1), (), (RunKernel(1, (0, 1), (2,)),), (2,), 3),
    "three": PlanBlock((0, 1), (), (RunKernel(1, (0, 1), (2,)), RunKernel(2, (2,), (3,))), (3,), 4),
}


def variant(block: str, sizes: Mapping[str, int]) -> PlanVariant:
    form = f32("", sizes["n"], sizes["m"])
    return PlanVariant(sizes, block, (form,) * BLOCKS[block].slots)


VARIANTS = (variant("two", {"n": 2, "m": 5}), variant("three", {"n": 3, "m": 5}))


def dynamic_plan() -> ExecutionPlan:
    """@main doubles the first input; for sizes (2, 5) it adds both, for (3, 5) it adds both and one."""
    a, b = f32("a", "n", "m"), f32("b", "n", "m")
    plan = plan_of([RunKernel(0, (0,), (2,))], [a, b], [2], [a, b, None], blocks=BLOCKS)
    return replace(plan, variants=VARIANTS)


def executable() -> Executable:
    return Executable(dynamic_plan(), [fake("double"), fake("add"), fake("increment")])


def inputs_of(shape: tuple[int, int]) -> tuple[Array, Array]:
    a = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    return a, a + 10


def expected(shape: tuple[int, int]) -> Array:
    a, b = inputs_of(shape)
    return {(2, 5): a + b, (3, 5): a + b + 1}.get(shape, 2 * a)


SHAPES = ((2, 5), (3, 5), (2, 4), (5, 2), (0, 5), (2, 5))


def check(exe: Executable) -> None:
    for shape in SHAPES:
        a, b = inputs_of(shape)
        np.testing.assert_array_equal(exe(a, b), expected(shape))
        out = np.full(shape, np.nan, np.float32)
        exe.run_into([a, b], [out])
        np.testing.assert_array_equal(out, expected(shape))


def test_sizes_choose_the_block() -> None:
    check(executable())


def test_an_artifact_keeps_its_variants(tmp_path: Path, fake_toolchain: type[FakeToolchain]) -> None:
    executable().save(tmp_path / "a.intarsia")
    exe = load(tmp_path / "a.intarsia")
    assert exe.plan.variants == VARIANTS
    check(exe)


def test_a_bound_call_stays_with_the_block_of_its_arrays() -> None:
    exe = executable()
    for shape in SHAPES[:3]:
        a, b = inputs_of(shape)
        out = np.zeros(shape, np.float32)
        call = exe.bind([a, b], [out])
        call()
        np.testing.assert_array_equal(out, expected(shape))
    call = exe.bind(inputs_of((2, 5)))  # a variant has the shapes of its outputs
    call()
    np.testing.assert_array_equal(call.outputs[0], expected((2, 5)))


def test_profiles_and_traces_are_of_the_block_that_runs() -> None:
    exe = executable()
    assert [row.part for row in exe.profile(*inputs_of((3, 5)), repeats=1).rows] == ["kernel1", "kernel2"]
    assert [row.part for row in exe.profile(*inputs_of((4, 5)), repeats=1).rows] == ["kernel0"]
    assert len(exe.trace(*inputs_of((3, 5))).events) == 2


def test_buffers_of_a_variant_are_made_for_its_first_call() -> None:
    exe = executable()
    entry = exe._entries.of(inputs_of((2, 5)))
    assert "runner" not in vars(entry)
    exe(*inputs_of((2, 5)))
    assert "runner" in vars(entry)


def test_a_forked_child_has_its_own_buffers() -> None:
    exe = executable()
    exe(*inputs_of((2, 5)))
    pid = os.fork()
    if not pid:
        try:
            check(exe)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_closed_executable_closes_the_kernels_of_variants() -> None:
    exe = executable()
    kernels = exe.kernels
    exe.close()
    assert [kernel.closed for kernel in kernels if isinstance(kernel, FakeKernel)] == [1, 1, 1]


def test_variants_come_back_from_json() -> None:
    plan = dynamic_plan()
    assert plan_from_json(Record(json.loads(json.dumps(plan_to_json(plan))), "plan")) == plan
    assert "variants" not in plan_to_json(replace(plan, variants=()))


def test_a_right_plan_has_no_complaint() -> None:
    assert plan_complaint(dynamic_plan(), 3, 0) == ""


@each_case(
    ("variants", "complaint"),
    [
        ((VARIANTS[0], PlanVariant({"n": 2}, "two", ())), "its variants are for different dimensions"),
        ((PlanVariant({"k": 2}, "two", ()),), "a variant is for a dimension that no input has"),
        ((PlanVariant({}, "two", ()),), "a variant is for a dimension that no input has"),
        ((replace(VARIANTS[0], block="four"),), 'it has no block "four" for a variant'),
        ((replace(VARIANTS[0], block="main"),), 'it has no block "main" for a variant'),
        ((replace(VARIANTS[0], slot_types=()),), 'block "two" has 0 slot types, expected 3'),
        ((VARIANTS[0], replace(VARIANTS[1], sizes=VARIANTS[0].sizes)), "two variants are for n=2, m=5"),
    ],
)
def test_wrong_variants(variants: tuple[PlanVariant, ...], complaint: str) -> None:
    assert plan_complaint(replace(dynamic_plan(), variants=variants), 3, 0) == complaint


def test_a_dimension_of_what_is_no_tensor_chooses_nothing() -> None:
    plan = dynamic_plan()
    sequences = tuple(replace(info, dtype="Sequence[Tensor[?, float32]]") for info in plan.inputs)
    complaint = plan_complaint(replace(plan, inputs=sequences), 3, 0)
    assert complaint == "a variant is for a dimension that no input has"


def test_a_variant_with_other_parameters() -> None:
    blocks = {**dynamic_plan().blocks, "two": PlanBlock((0,), (), (), (0,), 3)}
    plan = replace(dynamic_plan(), blocks=blocks)
    assert plan_complaint(plan, 3, 0) == 'block "two" does not take and return what the plan says'


def test_inputs_that_fit_no_program_are_refused_as_before() -> None:
    with pytest.raises(Exception, match='dimension "n" is 2 in input "a" and 3 in input "b"'):
        executable()(np.zeros((2, 5), np.float32), np.zeros((3, 5), np.float32))
