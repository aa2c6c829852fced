"""Scans in one call of a kernel compute what they compute one iteration after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.onnx_models import model_of
from tests.recurrent_layers import recurrent_model

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import IRModule
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import Copy, Invoke, PlanBlock, RunKernel, Step
from intarsia.runtime.repetition import Repetition
from intarsia.runtime.scan_at_once import KernelBody, kernel_body
from intarsia.target import Target

NATIVE = Target.for_toolchain("native", threads=1)


def native(module: IRModule) -> Executable:
    return build(partition_whole(module, NATIVE))


def forbid_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a Scan that runs one iteration after another fail."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("one iteration after another")

    monkeypatch.setattr(Repetition, "next_arguments", refuse)


def running_sum(steps: int, backward: int = 0, axis: int = 0) -> IRModule:
    """The sums of rows up to each one, these negated, and their products with the rows."""
    shape = f"3,{steps}" if axis else f"{steps},3"
    return from_onnx(
        model_of(
            f"g (float[3] s, float[{shape}] x) =>"
            f" (float[3] last, float[{shape}] sums, float[{steps},3] products) {{"
            f" last, sums, products = Scan <num_scan_inputs = 1, scan_input_axes = [{axis}],"
            f" scan_input_directions = [{backward}], scan_output_axes = [{axis}, 0],"
            f" scan_output_directions = [{backward}, 0],"
            " body = step (float[3] a, float[3] b) => (float[3] c, float[3] d, float[3] e)"
            " { c = Add(a, b) d = Neg(c) e = Mul(c, b) }> (s, x) }"
        )
    )


def expected_sums(
    s: npt.NDArray[np.float32], x: npt.NDArray[np.float32], backward: int, axis: int
) -> list[npt.NDArray[np.float32]]:
    rows = np.moveaxis(x, axis, 0)
    rows = rows[::-1] if backward else rows
    sums = s + np.cumsum(rows, axis=0, dtype=np.float64)
    stacked = sums[::-1] if backward else sums
    parts = [sums[-1], -np.moveaxis(stacked, 0, axis), sums * rows]
    return [np.asarray(part, np.float32) for part in parts]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("steps", [2, 3, 130, 1500])
def test_states_and_rows(steps: int, backward: int, axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    shape = (3, steps) if axis else (steps, 3)
    s, x = (
        generator.standard_normal(3).astype(np.float32),
        generator.standard_normal(shape).astype(np.float32),
    )
    with native(running_sum(steps, backward, axis)) as executable:
        forbid_iterations(monkeypatch)
        found = executable(s, x)
        for one, other in zip(found, expected_sums(s, x, backward, axis), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
        kept = [np.array(result) for result in found]
        executable(s + 1, x)
        for one, other in zip(found, kept, strict=True):  # results belong to the caller
            np.testing.assert_array_equal(one, other)


def test_states_and_slices_without_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    module = from_onnx(
        model_of(
            "g (float s, float[200] x) => (float last, float[200] sums) {"
            " last, sums = Scan <num_scan_inputs = 1,"
            " body = step (float a, float b) => (float c, float d) { c = Add(a, b) d = Neg(c) }> (s, x) }"
        )
    )
    s, x = np.array(1.0, np.float32), np.arange(200, dtype=np.float32)
    with native(module) as executable:
        forbid_iterations(monkeypatch)
        last, sums = executable(s, x)
    assert isinstance(last, np.ndarray)
    assert (last.shape, float(last)) == ((), 1 + x.sum())
    np.testing.assert_array_equal(sums, -(1 + np.cumsum(x)))


@settings(max_examples=examples(12, quick=2), deadline=None)
@given(
    cell=st.sampled_from(["LSTM", "GRU", "RNN"]),
    steps=st.integers(1, 140),
    batch=st.integers(1, 3),
    width=st.integers(1, 9),
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
)
def test_recurrent_layers(cell: str, steps: int, batch: int, width: int, direction: str) -> None:
    model = recurrent_model(cell, steps=steps, batch=batch, width=width, direction=direction, scale=0.5)
    module = from_onnx(model)
    x = np.random.default_rng(width).standard_normal((steps, batch, 3)).astype(np.float32)
    expected = build(partition_whole(module, Target.for_toolchain("onnxruntime"))).run_flat(x)
    with native(module) as executable:
        for one, other in zip(executable.run_flat(x), expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-5)


def test_profiles_and_traces_see_each_iteration() -> None:
    s, x = np.zeros(3, np.float32), np.ones((200, 3), np.float32)
    with native(running_sum(200)) as executable:
        calls = {row.calls for row in executable.profile(s, x, repeats=1, warmup=0, inside=False).rows}
        assert 200 in calls
        assert len(executable.trace(s, x).events) >= 200
        np.testing.assert_allclose(executable(s, x)[0], [200, 200, 200])


def block(params: int, step: Step | tuple[Step, ...], results: tuple[int, ...]) -> PlanBlock:
    steps = step if isinstance(step, tuple) else (step,)
    return PlanBlock(tuple(range(params)), (), steps, results, 9)


@pytest.mark.parametrize(
    ("blocks", "body"),
    [
        ({"b": block(2, RunKernel(4, (1, 0), (2, 3)), (3, 2, 3))}, KernelBody(4, (1, 0), (1, 0, 1))),
        (
            {
                "b": block(3, Invoke("c", (2, 0), (3, 4)), (4, 3)),
                "c": block(2, RunKernel(1, (1, 0), (5, 6)), (6, 5)),
            },
            KernelBody(1, (0, 2), (0, 1)),
        ),
        ({"b": block(1, RunKernel(0, (0,), (1,)), (1, 0))}, None),  # a parameter is a result
        ({"b": block(1, RunKernel(0, (0, 2), (1,)), (1,))}, None),  # a constant of the block
        ({"b": block(1, (RunKernel(0, (0,), (1,)), RunKernel(0, (1,), (2,))), (2,))}, None),
        ({"b": block(1, Copy(0, 1, 0), (1,))}, None),
        ({"b": block(1, Invoke("b", (0,), (1,)), (1,))}, None),
        ({"b": block(1, (), (0,))}, None),
    ],
)
def test_what_a_block_runs(blocks: dict[str, PlanBlock], body: KernelBody | None) -> None:
    assert kernel_body(blocks, "b") == body
