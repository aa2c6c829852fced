"""RefineStates, CaptureStates and UnrollLoops: programs keep what they compute, and say more of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, parser
from tests.onnx_models import onnxruntime_outputs
from tests.pass_checks import checked

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, Function, IRModule, TensorType, post_order
from intarsia.op import verify
from intarsia.passes import CaptureStates, RefineStates, UnrollLoops

pytestmark = pytest.mark.quick_tests(8)


def model(text: str) -> ModelProto:
    return parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>' + text)


def loops(module: IRModule) -> list[Call]:
    found = [expr for expr in post_order(module["main"]) if isinstance(expr, Call)]
    return [expr for expr in found if str(expr.op) in ("Loop", "Scan")]


def state_shapes(module: IRModule) -> list[Any]:
    """The shapes of the states of the only loop."""
    (loop,) = loops(module)
    body = loop.args[-1]
    assert isinstance(body, Function)
    params = body.params[2:] if str(loop.op) == "Loop" else body.params
    return [param.checked_type.shape for param in params if isinstance(param.checked_type, TensorType)]


def same_results(proto: ModelProto, module: IRModule, *inputs: Any) -> None:
    names = [item.name for item in proto.graph.input]
    expected = onnxruntime_outputs(proto, dict(zip(names, inputs, strict=True)))
    with build(module) as executable:
        for found, wanted in zip(executable.run_flat(*inputs), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)  # type: ignore[arg-type]


X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)

TWO_STATES = """
two (float[2,3] x, float[1,3] g, int64 n) => (float[2,3] y, float[m,3] z) {{
  c = Constant <value = bool {{1}}>()
  y, z = Loop (n, c, x, g) <body = step (int64 i, bool on, s, t) => (bool go, s2, t2) {{
    s1 = {kept}
    s2 = Tanh(s1)
    t2 = Concat <axis = 0>(t, g)
    go = Identity(on)
  }}>
}}
"""


def test_states_that_keep_their_shape_get_it_and_others_do_not() -> None:
    proto = model(TWO_STATES.format(kept="Add(s, x)"))
    module = from_onnx(proto)
    assert state_shapes(module) == [None, None]
    after = checked(RefineStates(), module)
    assert state_shapes(after) == [(2, 3), None]
    for trips in (0, 3):
        same_results(proto, after, X, X[:1], np.array(trips))


def test_a_state_that_depends_on_one_whose_shape_changes_is_not_refined() -> None:
    proto = model(
        TWO_STATES.format(kept="Concat <axis = 0>(s, t)").replace("y, float[m,3] z", "y, float[m,3] z")
    )
    proto.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "k"
    module = from_onnx(proto)
    after = checked(RefineStates(), module)
    assert state_shapes(after) == state_shapes(module)
    same_results(proto, after, X, X[:1], np.array(2))


def test_a_state_that_changes_once_is_not_refined() -> None:
    """The first iteration broadcasts it, later ones keep it."""
    proto = model(
        """once (float[1,3] s0, float[2,3] x, int64 n) => (float[m,3] y) {
        c = Constant <value = bool {1}>()
        y = Loop (n, c, s0) <body = step (int64 i, bool on, s) => (bool go, t) {
          t = Add(s, x) go = Identity(on) }> }"""
    )
    after = checked(RefineStates(), from_onnx(proto))
    assert state_shapes(after) == [None]
    for trips in (0, 1, 2):
        same_results(proto, after, X[:1], X, np.array(trips))


def test_states_of_a_scan_are_refined_and_what_follows_is_known() -> None:
    """Scikit-learn's nearest neighbours: distances to each training row."""
    proto = model(
        """distances (float[2,3] x, float[4,3] rows) => (float[4,k] y) {
        kept, y = Scan (x, rows) <num_scan_inputs = 1,
          body = step (float[b,3] s, float[3] row) => (float[b,3] t, float[b] d) {
            t = Identity(s) e = Sub(s, row) d = ReduceSumSquare <keepdims = 0>(e, one) }> }"""
    )
    proto.graph.initializer.add(name="one", data_type=7, dims=[1], int64_data=[1])
    after = checked(RefineStates(), from_onnx(proto))
    assert state_shapes(after)[0] == (2, 3)
    (loop,) = loops(after)
    assert str(loop.checked_type) == "(Tensor[(2, 3), float32], Tensor[(4, 2), float32])"
    same_results(proto, after, X, np.vstack([X, X + 1]))


def test_a_state_inside_of_a_body_is_refined() -> None:
    proto = model(
        """outer (float[2,3] x, int64 n) => (float[2,3] y) {
        c = Constant <value = bool {1}>()
        y = Loop (n, c, x) <body = step (int64 i, bool on, s) => (bool go, t) {
          d = Constant <value = bool {1}>()
          t = Loop (n, d, s) <body = inner (int64 j, bool h, u) => (bool more, v) {
            w = Sub(u, x) v = Sigmoid(w) more = Identity(h) }>
          go = Identity(on) }> }"""
    )
    after = checked(RefineStates(), from_onnx(proto))
    wanted = "fn (Tensor[(), int64], Tensor[(), bool], Tensor[(2, 3), float32]) -> "
    shown = [str(loop.args[-1].checked_type) for loop in loops(after)]
    assert shown == [f"{wanted}(Tensor[(), bool], Tensor[(2, 3), float32])"] * 2
    same_results(proto, after, X, np.array(3))


COUNTED = """
counted (float[2,3] x) => (float[2,3] y, float[k,2,3] rows, int64[k] numbers) {{
  n = Constant <value = int64 {{{trips}}}>()
  c = Constant <value = bool {{1}}>()
  y, rows, numbers = Loop (n, c, x) <body = step (int64 i, bool on, float[2,3] s)
      => (bool go, float[2,3] t, float[2,3] row, int64 number) {{
    f = Cast <to = 1>(i)
    scaled = Mul(s, f)
    t = {first}(scaled)
    row = {second}(t)
    number = Add(i, n)
    go = Identity(on)
  }}>
}}
"""


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 5),
    st.sampled_from(["Tanh", "Neg", "Sigmoid"]),
    st.sampled_from(["Identity", "Sin", "Relu"]),
)
def test_unrolled_loops_compute_the_same(trips: int, first: str, second: str) -> None:
    proto = model(COUNTED.format(trips=trips, first=first, second=second))
    after = checked(UnrollLoops(), from_onnx(proto))
    assert not loops(after)
    same_results(proto, after, X)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("{0}", "{0}"), "no iterations"),
        (("{1}>()\n  y", "{0}>()\n  y"), "it does not begin"),
        (("Identity(on)", "Not(on)"), "it ends before"),
        (("t = Tanh(scaled)", "r = RandomNormalLike(s) t = Add(r, scaled)"), "it draws"),
        (
            ("n = Constant <value = int64 {3}>()", "m = ReduceSum <keepdims = 0>(x) n = Cast <to = 7>(m)"),
            "unknown",
        ),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_other_loops_stay(change: tuple[str, str], reason: str) -> None:
    text = COUNTED.format(trips=0 if reason == "no iterations" else 3, first="Tanh", second="Relu")
    assert change[0] in text
    module = from_onnx(model(text.replace(*change)))
    assert len(loops(UnrollLoops()(module))) == 1


def test_long_and_large_loops_stay() -> None:
    module = from_onnx(model(COUNTED.format(trips=5, first="Tanh", second="Relu")))
    assert len(loops(UnrollLoops(most_iterations=4)(module))) == 1
    assert len(loops(UnrollLoops(most_calls=20)(module))) == 1
    assert not loops(UnrollLoops(most_iterations=5, most_calls=40)(module))


def test_results_that_nobody_uses_may_be_missing() -> None:
    proto = model(
        """few (float[2,3] x) => (float[2,3] y) {
        n = Constant <value = int64 {2}>()
        c = Constant <value = bool {1}>()
        y = Loop (n, c, x) <body = step (int64 i, bool on, float[2,3] s)
            => (bool go, float[2,3] t, float[3] row) {
          t = Tanh(s) row = ReduceSum <keepdims = 0>(t, zero) go = Identity(on) }> }"""
    )
    proto.graph.initializer.add(name="zero", data_type=7, dims=[1], int64_data=[0])
    after = checked(UnrollLoops(), from_onnx(proto))
    assert not loops(after)
    with build(after) as executable:
        np.testing.assert_allclose(executable(X), np.tanh(np.tanh(X)), rtol=1e-6)


SCANNED = """
scanned (float[{a}] x, float[{b}] y, float[2,3] s0) => (float[2,3] s, float[{c}] rows, float[{d}] sums) {{
  s, rows, sums = Scan <num_scan_inputs = 2, scan_input_axes = [{i}, {j}],
      scan_input_directions = [{p}, {q}], scan_output_axes = [{k}, {l}], scan_output_directions = [{q}, {p}],
      body = step (float[2,3] t, float[2,3] u, float[3] v)
      => (float[2,3] after, float[2,3] row, float[3] total) {{
    m = {first}(t)
    w = Mul(u, v)
    after = Add(m, w)
    row = Tanh(after)
    o = Constant <value_ints = [0]>()
    total = ReduceSum <keepdims = 0>(row, o)
  }}>(s0, x, y)
}}
"""


def with_axis(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    place = axis % (len(shape) + 1)
    return (*shape[:place], size, *shape[place:])


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 5),
    st.tuples(st.integers(-3, 2), st.integers(-2, 1), st.integers(-3, 2), st.integers(-2, 1)),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from(["Neg", "Identity", "Sigmoid"]),
)
def test_unrolled_scans_compute_the_same(
    count: int, axes: tuple[int, int, int, int], backward: tuple[bool, bool], first: str
) -> None:
    i, j, k, axis = axes
    shapes = [with_axis((2, 3), i, count), with_axis((3,), j, count)]
    shapes += [with_axis((2, 3), k, count), with_axis((3,), axis, count)]
    a, b, c, d = (",".join(map(str, shape)) for shape in shapes)
    p, q = map(int, backward)
    proto = model(SCANNED.format(a=a, b=b, c=c, d=d, i=i, j=j, k=k, l=axis, p=p, q=q, first=first))
    after = UnrollLoops()(from_onnx(proto))  # onnx.reference knows no other axes or directions
    verify(after)
    assert not loops(after)
    x, y = (np.linspace(-1, 1, np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes[:2])
    same_results(proto, after, x, y, X)


def test_scans_of_unknown_length_stay() -> None:
    text = SCANNED.format(a="n,2,3", b="n,3", c="n,2,3", d="n,3", i=0, j=0, k=0, l=0, p=0, q=0, first="Neg")
    assert len(loops(UnrollLoops()(from_onnx(model(text))))) == 1


DISTANCES = """
distances (float[4,3] x, float[5,3] others, float[2,3] s0)
    => (float[4,3] kept, float[2,3] s, float[5,4] rows) {
  kept, s, rows = Scan <num_scan_inputs = 1, body = step (float[4,3] a, float[2,3] t, float[3] b)
      => (float[4,3] same, float[2,3] after, float[4] row) {
    same = Identity(a)
    after = Mul(t, b)
    d = Sub(a, b)
    axis = Constant <value_ints = [1]>()
    row = ReduceSumSquare <keepdims = 0>(d, axis)
  }>(x, s0, others)
}
"""


def test_a_scan_captures_the_state_that_no_iteration_changes() -> None:
    proto = model(DISTANCES)
    module = from_onnx(proto)
    after = checked(CaptureStates(), module)
    assert state_shapes(module) == [(4, 3), (2, 3), (3,)]
    assert state_shapes(after) == [(2, 3), (3,)]
    x, others = (np.linspace(-1, 1, n * 3, dtype=np.float32).reshape(n, 3) for n in (4, 5))
    same_results(proto, after, x, others, X)


def test_a_scan_without_other_states_has_none() -> None:
    text = DISTANCES
    for part in ("float[2,3] t, ", " float[2,3] after,", ", float[2,3] s0", " float[2,3] s,", " s,", ", s0"):
        assert part in text
        text = text.replace(part, "")
    proto = model(text.replace("after = Mul(t, b)", ""))
    after = checked(CaptureStates(), from_onnx(proto))
    assert state_shapes(after) == [(3,)]
    x, others = (np.linspace(-1, 1, n * 3, dtype=np.float32).reshape(n, 3) for n in (4, 5))
    same_results(proto, after, x, others)


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_a_loop_captures_the_state_that_no_iteration_changes(trips: int) -> None:
    text = TWO_STATES.format(kept="Add(s, t)").replace("t2 = Concat <axis = 0>(t, g)", "t2 = Identity(t)")
    proto = model(text)
    module = checked(RefineStates(), from_onnx(proto))
    after = checked(CaptureStates(), module)
    assert state_shapes(after) == [(2, 3)]
    same_results(proto, after, X, X[:1], np.array(trips))


def test_states_of_other_types_than_their_initial_values_are_not_captured() -> None:
    text = TWO_STATES.format(kept="Add(s, x)").replace("Concat <axis = 0>(t, g)", "Identity(t)")
    module = from_onnx(model(text))
    assert state_shapes(CaptureStates()(module)) == [None, None]
