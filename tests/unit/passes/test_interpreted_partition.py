"""Programs with control flow on native, which compiles what stands in branches and bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, parser
from tests.effort import examples
from tests.recurrent_layers import recurrent_model

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.passes import InferType, OutlineBodies, partition_for, partition_whole
from intarsia.passes.interpreted_partition import interpreted_partition
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import Repeat
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.target import Target

pytestmark = pytest.mark.quick_tests(11)

NATIVE = Target.for_toolchain("native")

LOOP = """
layer (float[2,4] x, int64 n) => (float[2,4] y, float[k,2,4] ys)
<float[4,4] w = {1,0,0.5,0, 0,1,0,0, 0,0,0.5,0, 0.25,0,0,1}>
{
  c = Constant <value = bool {1}>()
  y, ys = Loop (n, c, x) <body = step (int64 i, bool goes, float[2,4] s)
      => (bool goes_on, float[2,4] t, float[2,4] row) {
      p = MatMul(s, w)
      t = Tanh(p)
      row = Add(t, x)
      goes_on = Identity(goes)
  }>
}
"""
UNTIL = """
until (float[3] x, int64 n) => (float[3] y, int64 count)
{
  c = Constant <value = bool {1}>()
  zero = Constant <value = int64 {0}>()
  y, count = Loop (n, c, x, zero) <body = step (int64 i, bool goes, s, k)
      => (bool goes_on, float[3] t, int64 more) {
      half = Constant <value = float {0.5}>()
      one = Constant <value = int64 {1}>()
      t = Mul(s, half)
      more = Add(k, one)
      largest = ReduceMax <keepdims = 0>(t)
      bound = Constant <value = float {0.1}>()
      goes_on = Greater(largest, bound)
  }>
}
"""
GROWING = """
growing (float[1,4] x, int64 n) => (float[m,4] y)
{
  c = Constant <value = bool {1}>()
  y = Loop (n, c, x) <body = step (int64 i, bool goes, float[r,4] s) => (bool goes_on, float[q,4] t) {
      first = Exp(x)
      scaled = Tanh(first)
      t = Concat <axis = 0>(s, scaled)
      goes_on = Identity(goes)
  }>
}
"""
SCAN = """
scan (float[4] start, float[2,6] down, float[6,4] rows) => (float[4] y, float[4,6] across, float[6] sums)
{
  y, across, sums = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [0, 1],
      scan_output_axes = [-1, 0], scan_output_directions = [1, 0],
      body = step (float[4] s, float[2] column, float[4] row) => (float[4] t, float[4] u, float total) {
        width = ReduceSum <keepdims = 1>(column)
        moved = Mul(s, width)
        t0 = Add(moved, row)
        t = Sigmoid(t0)
        u = Neg(t)
        total = ReduceSum <keepdims = 0>(row)
      }>(start, down, rows)
}
"""
NESTED = """
nested (float[3] x, int64 n) => (float[3] y)
{
  c = Constant <value = bool {1}>()
  y = Loop (n, c, x) <body = outer (int64 i, bool goes, float[3] s) => (bool goes_on, float[3] t) {
      up = Exp(x)
      is_even = Cast <to = 9>(i)
      inner_c = Constant <value = bool {1}>()
      t = If (is_even) <
        then_branch = then () => (float[3] a) { a = Sub(s, up) },
        else_branch = otherwise () => (float[3] b) {
          b = Loop (n, inner_c, s) <body = inner (int64 j, bool h, float[3] v) => (bool more, float[3] w) {
              w0 = Add(v, up)
              w = Tanh(w0)
              more = Identity(h)
          }>
        }
      >
      goes_on = Identity(goes)
  }>
}
"""
BRANCH = """
branch (float[2,4] x, bool p) => (float[2,4] y)
{
  y = If (p) <
    then_branch = then () => (float[2,4] a) { e = Exp(x) a = Neg(e) },
    else_branch = otherwise () => (float[2,4] b) { b = Relu(x) }
  >
}
"""


def model(text: str) -> ModelProto:
    """A model of a graph's text."""
    return parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>' + text)


def on_native(text: str) -> Executable:
    """A model built for native as a whole."""
    return build(partition_whole(from_onnx(model(text)), NATIVE))


def assert_right(text: str, executable: Executable, *inputs: Any) -> None:
    """An executable returns what onnxruntime returns."""
    proto = model(text)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [item.name for item in proto.graph.input]
    expected = session.run(None, dict(zip(names, inputs, strict=True)))
    for found, wanted in zip(executable.run_flat(*inputs), expected, strict=True):
        assert isinstance(found, np.ndarray)
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def random(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def toolchains(executable: Executable) -> set[str]:
    return {kernel.source.toolchain for kernel in executable.kernels}


def test_a_loop_runs_its_body_on_native() -> None:
    with on_native(LOOP) as executable:
        (step,) = executable.plan.blocks["main"].steps
        assert isinstance(step, Repeat)
        assert toolchains(executable) == {"native"}
        for trips in (0, 1, 7):
            assert_right(LOOP, executable, random(2, 4), np.array(trips))


def test_a_loop_ends_when_its_condition_says_so() -> None:
    with on_native(UNTIL) as executable:
        assert "native" in toolchains(executable)
        for trips in (0, 2, 100):
            assert_right(UNTIL, executable, np.array([0.3, 0.9, -1.0], np.float32), np.array(trips))


def test_states_whose_shapes_change_are_refused() -> None:
    with pytest.raises(CompileError) as caught:
        partition_whole(from_onnx(model(GROWING)), NATIVE)
    assert caught.value.problem == "native cannot compile this: it has no kernels for these calls of Concat"
    assert caught.value.__notes__ == ["the first at node 't'"]


def refused(text: str, **domains: int) -> str:
    """What is said of a program that native does not take."""
    proto = model(text)
    for domain, version in domains.items():
        proto.opset_import.add(domain=domain.replace("_", "."), version=version)
    with pytest.raises(CompileError) as caught:
        partition_whole(from_onnx(proto), NATIVE)
    return caught.value.problem.removeprefix(
        "native cannot compile this: it has no kernels for these calls of "
    )


def test_operators_without_kernel_beside_a_branch_are_refused() -> None:
    text = """beside (float[4,4] x, bool p, bool[4] c) => (float d, z, float[4,4] y) {
        d0 = Det(x) e = Exp(x) d1 = Det(e) d = Add(d0, d1) z = Compress <axis = 0>(x, c)
        y = If (p) <then_branch = then () => (float[4,4] a) { a = Exp(x) },
          else_branch = otherwise () => (float[4,4] b) { b = Neg(x) }> }"""
    assert refused(text) == "Det, Compress"


def test_operators_without_kernel_in_a_branch_are_refused() -> None:
    text = """within (float[4,4] x, bool p) => (float y) {
        y = If (p) <then_branch = then () => (float a) { a = ReduceSum <keepdims = 0>(x) },
          else_branch = otherwise () => (float b) { b = Det(x) }> }"""
    assert refused(text) == "Det"


def test_operators_without_kernel_in_a_body_are_refused() -> None:
    text = """body (float[4,4] x, int64 n) => (float[4,4] y, ds) {
        c = Constant <value = bool {1}>()
        y, ds = Loop (n, c, x) <body =
          step (int64 i, bool goes, float[4,4] s) => (bool on, float[4,4] t, float d) {
          d = Det(s) t = Mul(s, d) on = Identity(goes) }> }"""
    assert refused(text) == "Det"


def test_opaque_operators_in_a_branch_are_refused() -> None:
    text = """opaque (float[4,4] x, bool p) => (float[4,4] y) {
        y = If (p) <then_branch = then () => (float[4,4] a) { a = Exp(x) },
          else_branch = otherwise () => (float[4,4] b) { r = Relu(x) b = com.microsoft.Inverse(r) }> }"""
    assert refused(text, com_microsoft=1) == "com.microsoft::Inverse"


SEQUENCES = """
sequences (float[6,4] x, int64 n) => (float[k,4] y)
<float[4,4] w = {1,0,0.5,0, 0,1,0,0, 0,0,0.5,0, 0.25,0,0,1}>
{
  c = Constant <value = bool {1}>()
  two = Constant <value = int64 {2}>()
  parts = SplitToSequence <axis = 0>(x, two)
  none = SequenceEmpty <dtype = 1>()
  rows = Loop (n, c, none) <body = step (int64 i, bool goes, seq(float[2,4]) s)
      => (bool goes_on, seq(float[2,4]) t) {
      part = SequenceAt(parts, i)
      p = MatMul(part, w)
      q = Tanh(p)
      t = SequenceInsert(s, q)
      goes_on = Identity(goes)
  }>
  y = ConcatFromSequence <axis = 0>(rows)
}
"""


@pytest.mark.parametrize("default", [None, str(NATIVE)], ids=["build", "tune"])
def test_sequences_run_on_the_reference_whatever_the_rest_is_built_for(default: str | None) -> None:
    partitioned = partition_whole(from_onnx(model(SEQUENCES)), NATIVE)
    with build(partitioned, default) as executable:
        assert toolchains(executable) == {"native", "reference"}
        for trips in (1, 3):
            assert_right(SEQUENCES, executable, random(6, 4), np.array(trips))


SEGMENTS = """
segments (int64[7] ids) => (float[k,3] y)
<float[5,3] table = {1,2,3, 4,5,6, 7,8,9, 1,0,1, 2,2,2}, int64[4] ends = {0, 2, 3, 7}>
{
  three = Constant <value = int64 {3}>()
  c = Constant <value = bool {1}>()
  one = Constant <value = int64 {1}>()
  zero = Constant <value = int64[1] {0}>()
  y = Loop (three, c) <body = step (int64 i, bool goes) => (bool goes_on, row) {
      first = Gather(ends, i)
      begin = Unsqueeze(first, zero)
      next = Add(i, one)
      after = Gather(ends, next)
      last = Unsqueeze(after, zero)
      part = Slice(ids, begin, last, zero)
      rows = Gather(table, part)
      row = ReduceSum <keepdims = 0>(rows, zero)
      goes_on = Identity(goes)
  }>
}
"""


def test_shapes_that_depend_on_the_iteration_are_known_in_short_loops() -> None:
    """PyTorch writes a loop over the bags of an EmbeddingBag."""
    with on_native(SEGMENTS) as executable:
        assert toolchains(executable) == {"native"}
        assert_right(SEGMENTS, executable, np.array([4, 0, 1, 3, 3, 2, 0]))


@pytest.mark.parametrize(("trips", "is_unrolled"), [(3, True), (30, False)])
def test_loops_that_native_runs_are_unrolled_to_few_calls(trips: int, is_unrolled: bool) -> None:
    text = LOOP.replace("x, int64 n)", "x)").replace(
        "c = Constant", f"n = Constant <value = int64 {{{trips}}}>() c = Constant", 1
    )
    with on_native(text) as executable:
        steps = executable.plan.blocks["main"].steps
        assert any(isinstance(step, Repeat) for step in steps) is not is_unrolled
        assert_right(text, executable, random(2, 4))


@pytest.mark.parametrize("is_unrolled", [True, False])
def test_a_scan_keeps_to_its_axes_and_directions(is_unrolled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_unrolled:
        monkeypatch.setattr("intarsia.passes.interpreted_partition._FEW_CALLS", 0)
    with on_native(SCAN) as executable:
        assert (
            any(isinstance(step, Repeat) for step in executable.plan.blocks["main"].steps) is not is_unrolled
        )
        assert "native" in toolchains(executable)
        assert_right(SCAN, executable, random(4), random(2, 6), random(6, 4))


def test_loops_and_branches_inside_of_loops_run_on_native() -> None:
    with on_native(NESTED) as executable:
        assert "native" in toolchains(executable)
        for trips in (0, 1, 4):
            assert_right(NESTED, executable, random(3), np.array(trips))


def test_a_branch_runs_on_native() -> None:
    with on_native(BRANCH) as executable:
        assert toolchains(executable) == {"native"}
        for truth in (True, False):
            assert_right(BRANCH, executable, random(2, 4), np.array(truth))


def test_recursion_runs_on_native() -> None:
    module = parse_module(
        """
        def @main(%x: Tensor[(4,), float32], %n: Tensor[(), int64]) -> Tensor[(4,), float32] {
          @power(%x, %n): Tensor[(4,), float32]
        }
        def @power(%x: Tensor[(4,), float32], %n: Tensor[(), int64]) -> Tensor[(4,), float32] {
          if (Greater(%n, meta[Constant][0])) {
            Tanh(@power(%x, Sub(%n, meta[Constant][1])): Tensor[(4,), float32])
          } else { Exp(%x) }
        }
        """,
        (np.array(0, np.int64), np.array(1, np.int64)),
    )
    x = random(4)
    expected = np.exp(x)
    for _ in range(5):
        expected = np.tanh(expected)
    with build(partition_whole(InferType()(module), NATIVE)) as executable:
        assert "native" in toolchains(executable)
        np.testing.assert_allclose(executable(x, np.array(5)), expected, rtol=1e-5)


def test_an_artifact_keeps_its_loops(tmp_path: Any) -> None:
    with on_native(SCAN) as executable:
        executable.save(tmp_path / "scan.intarsia")
        plan = executable.plan
    with load(tmp_path / "scan.intarsia") as loaded:
        assert loaded.plan == plan
        assert_right(SCAN, loaded, random(4), random(2, 6), random(6, 4))


def test_a_long_recurrent_layer_becomes_a_loop_over_the_kernels_of_one_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("intarsia.passes.decompose_recurrent.MOST_STEPS", 3)
    proto = recurrent_model("LSTM", direction="bidirectional", batch=2, optional=("b",), lengths=(5, 2))
    x = random(5, 2, 3)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    with build(partition_whole(from_onnx(proto), NATIVE)) as executable:
        assert toolchains(executable) == {"native"}
        for found, wanted in zip(executable(x), session.run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.integers(0, 5))
def test_every_axis_and_direction_of_a_scan(
    taken: int, backward: int, stacked: int, back: int, length: int
) -> None:
    text = f"""
    scan (float[3] start, float[{"3,N" if taken else "N,3"}] x) => (float[3] y, z)
    {{
      y, z = Scan <num_scan_inputs = 1, scan_input_axes = [{taken}], scan_input_directions = [{backward}],
          scan_output_axes = [{stacked}], scan_output_directions = [{back}],
          body = step (float[3] s, float[3] row) => (float[3] t, float[3] u) {{
            u = Sub(s, row)
            t = Tanh(u)
          }}>(start, x)
    }}
    """
    shape = (3, length) if taken else (length, 3)
    module = from_onnx(model(text))
    with build(partition_whole(module, NATIVE)) as executable:
        assert "native" in toolchains(executable)
        if length:
            assert_right(text, executable, random(3), random(*shape))
            return
        y, z = executable(random(3), random(*shape))  # onnxruntime takes no Scan of nothing
        np.testing.assert_array_equal(y, random(3))
        assert z.shape == ((3, 0) if stacked else (0, 3))


def test_rows_of_different_shapes_are_refused() -> None:
    text = GROWING.replace("(float[m,4] y)", "(float[m,4] y, ys)").replace("y = Loop", "y, ys = Loop")
    text = text.replace("=> (bool goes_on, float[q,4] t)", "=> (bool goes_on, float[q,4] t, float[q,4] row)")
    text = text.replace("goes_on = Identity(goes)", "goes_on = Identity(goes) row = Identity(t)")
    outlined = InferType()(OutlineBodies()(from_onnx(model(text))))
    with build(partition_for(outlined, "native")) as executable, pytest.raises(ExecutionError) as caught:
        executable(random(1, 4), np.array(2))
    assert caught.value.problem == "the rows that a loop stacks have the shapes (2, 4) and (3, 4)"


def test_toolchains_that_take_control_flow_get_it_whole() -> None:
    module = from_onnx(model(LOOP))
    assert interpreted_partition(module, Target.for_toolchain("onnxruntime")) is None


def test_a_program_without_control_flow_stays_one_function() -> None:
    module: IRModule = from_onnx(recurrent_model("GRU"))
    assert interpreted_partition(module, NATIVE) is None


def test_a_body_inside_of_a_body_needs_nothing_that_is_no_value() -> None:
    """The inner body uses nothing of the outer one, and stands beside it in the program."""
    module = partition_for(from_onnx(model(NESTED)), "onnxruntime")
    with build(module) as executable:
        assert_right(NESTED, executable, random(3), np.array(4))
