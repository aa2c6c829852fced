"""Loop nests of tensors as declared: their text, and what they write."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.loop_evaluator import run_prim_func
from tests.native_workloads import argmax_nm, layer_norm, softmax_nm
from tests.properties.lowering_programs import HARD

from intarsia.ir import DType, GlobalVar, IRModule, PrimFunc
from intarsia.ir.prim_func import Allocate, Block, Buffer, For, Load, LoopVar, Store
from intarsia.ir.printer import print_module
from intarsia.ir.verify import verify
from intarsia.native import te
from intarsia.native.lowering import lower_naive
from intarsia.support.errors import UsageError

Array = npt.NDArray[Any]


def lines(function: PrimFunc) -> list[str]:
    """The text of the body, checked and without indents."""
    mod = IRModule({GlobalVar("main"): function})
    verify(mod)
    return [line.strip() for line in print_module(mod).text.splitlines()[2:-1]]


def run(tensors: Sequence[te.Tensor], *given: Array, in_rows: bool = False) -> list[Array]:
    function = lower_naive(tensors, in_rows=in_rows)
    made = [np.zeros(tensor.shape, tensor.dtype.numpy) for tensor in tensors]
    names = [param.name for param in function.params]
    run_prim_func(function, dict(zip(names, [*given, *made], strict=True)))
    return made


A = te.placeholder((4, 5), name="A")
B = te.placeholder((5, 3), name="B")


def test_rows_are_summed_side_by_side() -> None:
    k = te.reduce_axis(5, "k")
    product = te.compute((4, 3), lambda i, j: te.sum(A[i, k] * B[k, j], k), name="y")
    assert lines(lower_naive([product], in_rows=True)) == [
        *("for i in 4 {", "for j in 3 {", "y[i, j] = 0.0f32;", "}"),
        *("for k in 5 {", "for j in 3 {", "y[i, j] = y[i, j] + A[i, k] * B[k, j];", "}", "}", "}"),
    ]
    generator = np.random.default_rng(0)
    given = [generator.standard_normal(tensor.shape).astype(np.float32) for tensor in (A, B)]
    np.testing.assert_array_equal(run([product], *given, in_rows=True)[0], run([product], *given)[0])
    total = te.compute((), lambda: te.sum(A[0, k], k), name="y")
    assert lines(lower_naive([total], in_rows=True)) == lines(lower_naive([total]))


def test_a_choice_as_a_whole_is_a_guarded_store() -> None:
    out = te.compute((6,), lambda i: te.if_then_else(i < 4, A[i, 0], -1.0), name="y")
    assert lines(lower_naive([out])) == [
        *("for i in 6 {", "if i < 4 {", "y[i] = A[i, 0];", "} else {", "y[i] = -1.0f32;", "}", "}"),
    ]
    a = np.arange(20, dtype=np.float32).reshape(4, 5)
    assert run([out], a)[0].tolist() == [0, 5, 10, 15, -1, -1]


def test_a_choice_inside_gets_a_register() -> None:
    out = te.compute((6,), lambda i: te.if_then_else(i < 4, A[i, 0], 0.0) * 2.0, name="y")
    assert lines(lower_naive([out])) == [
        *("for i in 6 {", "alloc choice: Buffer[(), float32, register] {"),
        *("if i < 4 {", "choice[] = A[i, 0];", "} else {", "choice[] = 0.0f32;", "}"),
        *("y[i] = choice[] * 2.0f32;", "}", "}"),
    ]
    a = np.arange(20, dtype=np.float32).reshape(4, 5)
    assert run([out], a)[0].tolist() == [0, 10, 20, 30, 0, 0]


def test_choices_inside_choices_load_nothing_in_vain() -> None:
    def element(i: te.Expression) -> te.Expression:
        inner = te.if_then_else(i >= 1, A[i - 1, 0], 7.0)
        return te.if_then_else(i < 5, inner + 1.0, inner * 0.0) + te.if_then_else(i < 4, A[i, 1], 0.0)

    a = np.arange(20, dtype=np.float32).reshape(4, 5)
    before = np.concatenate([[7], a[:, 0]])
    shifted = np.concatenate([before + 1])
    expected = shifted + np.concatenate([a[:, 1], [0]])
    out = te.compute((5,), element, name="y")
    np.testing.assert_array_equal(run([out], a)[0], expected)


def test_a_choice_in_an_index_or_a_condition() -> None:
    def element(i: te.Expression) -> te.Expression:
        place = te.if_then_else(i < 4, i, i - 4)
        return te.if_then_else(te.if_then_else(i < 4, A[i % 4, 0] > 5.0, i > 4), A[place, 1], 0.0)

    a = np.arange(20, dtype=np.float32).reshape(4, 5)
    assert run([te.compute((6,), element, name="y")], a)[0].tolist() == [0, 0, 11, 16, 0, 6]


def test_the_neutral_element_is_not_put_to_anything() -> None:
    k = te.reduce_axis(6, "k")
    value = te.if_then_else(k.expression < 5, A[0, k], te.lowest(DType.FLOAT32))
    assert lines(lower_naive([te.compute((), lambda: te.max(value, k), name="y")])) == [
        *("y[] = -inf_f32;", "for k in 6 {", "if k < 5 {", "y[] = max(y[], A[0, k]);", "}", "}"),
    ]
    other = te.if_then_else(k.expression >= 5, te.const(0.0), A[0, k])
    text = lines(lower_naive([te.compute((), lambda: te.sum(other, k), name="y")]))
    assert text[2] == "if not 5 <= k {"


def test_what_is_used_twice_is_computed_once() -> None:
    def element(i: te.Expression) -> te.Expression:
        power = te.exp(A[i, 0])
        return power / (power + 1.0)

    assert lines(lower_naive([te.compute((4,), element, name="y")]))[2:4] == [
        "shared[] = exp(A[i, 0]);",
        "y[i] = shared[] / (shared[] + 1.0f32);",
    ]


def test_expressions_that_double_with_each_level_stay_small() -> None:
    def element(i: te.Expression) -> te.Expression:
        value = A[i, 0]
        for _ in range(30):
            value = (value + value) * 0.5
        return value

    a = np.arange(20, dtype=np.float32).reshape(4, 5)
    out = te.compute((4,), element, name="y")
    assert len(lines(lower_naive([out]))) < 100
    np.testing.assert_array_equal(run([out], a)[0], a[:, 0])


def test_deep_expressions_are_cut() -> None:
    def element(i: te.Expression) -> te.Expression:
        value = A[i, 0]
        for _ in range(500):
            value = value + 1.0
        return value

    a = np.zeros((4, 5), np.float32)
    assert run([te.compute((4,), element, name="y")], a)[0].tolist() == [500.0] * 4


def test_several_results_are_updated_together() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (5, 7)).astype(np.float32)
    place, largest = run(argmax_nm()[1:], a)
    np.testing.assert_array_equal(place, a.argmax(axis=1))
    np.testing.assert_array_equal(largest, a.max(axis=1))


def test_softmax_and_layer_norm_as_numpy() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((5, 7)).astype(np.float32)
    powers = np.exp(a - a.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        run(softmax_nm()[1:], a)[0], powers / powers.sum(axis=1, keepdims=True), rtol=1e-5
    )
    x, scale, shift = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 6), (6,), (6,)))
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * scale + shift
    found = run(layer_norm()[3:], x, scale, shift)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_strided_conv_as_numpy() -> None:
    rng = np.random.default_rng(2)
    data, weight = rng.integers(-3, 4, (2, 5, 5)), rng.integers(-3, 4, (3, 2, 3, 3))
    padded = np.pad(data, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::2, ::2]
    expected = np.einsum("chwyx,fcyx->fhw", windows, weight)
    found = run(HARD["strided_conv"]()[2:], data.astype(np.float32), weight.astype(np.float32))[0]
    np.testing.assert_array_equal(found, expected)


def test_no_values_give_the_neutral_element() -> None:
    found = run(HARD["nothing"]()[2:], np.zeros((3, 0), np.float32), np.zeros((0, 3), np.float32))
    np.testing.assert_array_equal(found[0], np.zeros((3, 3)))


def test_a_statement_of_its_own() -> None:
    (found,) = run(HARD["running_sum"]()[1:], np.arange(5, dtype=np.float32))
    assert found.tolist() == [0, 4, 10, 18, 28]


def test_buffers_inside_statements_get_names_of_their_own() -> None:
    given = te.placeholder((2,), name="A")

    def doubled(source: te.Tensor, name: str) -> te.Tensor:
        out, held, i = Buffer(name, (2,), DType.FLOAT32), Buffer("held", (), DType.FLOAT32), LoopVar("i")
        steps = Store(held, (), Load(source.buffer, (i,))), Store(out, (i,), Load(held, ()))
        return te.extern((out,), (source,), For(LoopVar("i"), 2, Allocate(held, Block(steps))), name)[0]

    function = lower_naive([doubled(doubled(given, "first"), "second")])
    text = lines(function)
    assert "alloc held: Buffer[(), float32] {" in text
    assert "alloc held_1: Buffer[(), float32] {" in text


def test_errors() -> None:
    twice = te.compute((4,), lambda i: A[i, 0], name="A")
    with pytest.raises(UsageError, match="several operations are named A"):
        lower_naive([twice])
    with pytest.raises(UsageError, match="A is given; expected tensors that are computed"):
        lower_naive([A])
    out = te.compute((4,), lambda i: A[i, 0], name="y")
    with pytest.raises(UsageError, match="y stands twice among the tensors"):
        lower_naive([out, out])
