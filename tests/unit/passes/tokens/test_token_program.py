"""Programs on texts of any length in the form whose tokens are items."""

from __future__ import annotations

import numpy as np
import pytest
from tests.onnx_models import model_of
from tests.token_programs import (
    CONSTANTS,
    COUNTED,
    FORMS,
    HEADS,
    LENGTHS,
    NEIGHBOURS,
    OPERATORS,
    POOLED,
    RANGES,
    program,
    token_inputs,
    token_model,
)

from intarsia import build, from_onnx
from intarsia.ir import Call, Function, GlobalVar, IRModule, Op, SymbolicDim, post_order
from intarsia.passes.bind_dims import bind_function
from intarsia.passes.rules.tensor_facts import operator_name
from intarsia.passes.tokens import MixedTokensError, TokenProgram, token_program
from intarsia.runtime.kernel import Array


def tokens_of(mod: IRModule, texts: str | None = None) -> TokenProgram:
    function = mod["main"]
    assert isinstance(function, Function)
    return token_program(function, "length", 4096, texts)


def attentions(function: Function, name: str = "token_attention") -> list[Call]:
    return [
        node
        for node in post_order(function)
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == name
    ]


def run(function: Function, length: int, inputs: list[Array], texts: int = 1) -> list[Array]:
    bound = bind_function(function, {SymbolicDim("length"): length, SymbolicDim("batch"): texts})
    executable = build(IRModule({GlobalVar("main"): bound}))
    names = [param.name for param in function.params]
    return [np.asarray(item) for item in executable.run_flat(**dict(zip(names, inputs, strict=True)))]


@pytest.mark.parametrize("form", FORMS)
def test_the_form_computes_the_same(form: str) -> None:
    mod = program(form)
    tokens = tokens_of(mod)
    assert len(attentions(tokens.function)) == 1
    assert tokens.axes[:2] == (1, 1)
    assert tokens.result_axes == (1,)
    for length in LENGTHS[:8]:
        inputs = list(token_inputs(mod, length).values())
        tables = [
            np.moveaxis(table[:length], 0, axis)
            for table, axis in zip(tokens.tables, tokens.axes[2:], strict=True)
            if axis is not None
        ]
        (result,) = run(tokens.function, length, [*inputs, *tables])
        function = mod["main"]
        assert isinstance(function, Function)
        (right,) = run(function, length, inputs)
        np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("step", [*FORMS, *POOLED, *NEIGHBOURS, *COUNTED, *OPERATORS])
def test_the_form_computes_the_same_for_several_texts(step: str, head: str) -> None:
    mod = from_onnx(token_model([step], head=head, texts="batch"))
    tokens = tokens_of(mod, "batch")
    assert tokens.axes[:2] == (1, 1)
    assert tokens.text_axes[:2] == (0, 0)
    assert tokens.result_axes == (None if head else 1,)
    length, texts = 7, 3
    inputs = list(token_inputs(mod, length, texts=texts).values())
    tables = [
        np.repeat(np.moveaxis(table[:length], 0, axis), texts if at is not None else 1, 0)
        for table, axis, at in zip(tokens.tables, tokens.axes[2:], tokens.text_axes[2:], strict=True)
        if axis is not None
    ]
    (result,) = run(tokens.function, length, [*inputs, *tables], texts)
    function = mod["main"]
    assert isinstance(function, Function)
    (right,) = run(function, length, inputs, texts)
    assert result.shape == right.shape
    np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("head", [head for head in HEADS if head])
def test_what_all_tokens_become_is_pooled(head: str) -> None:
    tokens = tokens_of(from_onnx(token_model(["layer"], head=head)))
    pools = attentions(tokens.function, "token_pool")
    modes = {str(pool.attrs["mode"]) for pool in pools}
    assert modes
    assert tokens.tokens[0] == int(bool(modes & {"first", "last"}))


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ("b = Shape <end = 1> (x) f = Cast <to = 1> (b) y = Div (x, f)", "depends on the number of texts"),
        ("y = Softmax <axis = 0> (x)", "mixes items"),
        ("y = ReduceMean (x, one0)", "mixes items"),
        ("y = ReduceMean (x)", "mixes items"),
        ("y = Transpose <perm = [1, 0, 2]> (x)", "does not have the items in its first axis"),
        ("y = Reshape (x, row)", "does not have the items in its first axis"),
        ("t = Transpose <perm = [1, 0, 2]> (x) h = Reshape (t, rows) y = MatMul (h, w)", "mixes items"),
    ],
)
def test_what_mixes_texts_is_refused(steps: str, why: str) -> None:
    model = model_of(
        f"g (float[batch, length, 8] x) => (float y) {{ {steps} }}",
        opset=18,
        one0=np.array([0], np.int64),
        row=np.array([1, -1, 8], np.int64),
        rows=np.array([-1, 8], np.int64),
        w=np.ones((8, 8), np.float32),
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(MixedTokensError, match=why):
        tokens_of(from_onnx(model), "batch")


def test_what_depends_on_the_length_alone_becomes_a_table() -> None:
    tokens = tokens_of(from_onnx(token_model(["positions", "slopes"])))
    assert [table.shape for table in tokens.tables] == [(64, 1, 8), (64, 1, 2, 1)]
    assert tokens.tokens == (0, 64)


def test_without_tables_the_kernels_say_how_many_tokens_there_may_be() -> None:
    assert tokens_of(program("ranges")).tokens == (0, 4096)


def test_a_causal_mask_has_a_bias_of_later_keys() -> None:
    (plain,) = attentions(tokens_of(program("plain")).function)
    (causal,) = attentions(tokens_of(program("causal")).function)
    (both,) = attentions(tokens_of(program("ranges")).function)
    assert len(plain.args) == 3
    assert (len(causal.args), causal.attrs["replaces"]) == (5, 1)
    assert (len(both.args), both.attrs["replaces"]) == (5, 0)


def test_a_window_that_is_longer_than_the_compared_texts_is_no_causal_mask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window = RANGES.replace(
        "n = Not (later)",
        "d = Sub (a1, a) near = Less (d, hundred) m0 = Not (later) n = And (m0, near)",
    )
    monkeypatch.setitem(FORMS, "window", window)
    monkeypatch.setitem(CONSTANTS, "hundred", np.array(100, np.int64))
    with pytest.raises(MixedTokensError, match="depends on the number of tokens"):
        tokens_of(from_onnx(token_model(["window"])))


def test_a_scale_that_grows_for_long_texts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = (
        "l0 = Shape <start = 1, end = 2> (x) l = Squeeze (l0) g = Cast <to = 1> (l) c = Div (g, hundred) "
        "f = Max (c, one) b = Mul (s, f) "
    )
    monkeypatch.setitem(FORMS, "grown", grown)
    monkeypatch.setitem(CONSTANTS, "hundred", np.array(100, np.float32))
    with pytest.raises(MixedTokensError):
        tokens_of(from_onnx(token_model(["grown"])))


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (
            "l = Shape <start = 1, end = 2> (x) n = ReduceProd (l) f = Cast <to = 1> (n) g = Expand (f, l) "
            "h = CumSum (g, zero0) d = ReduceMax (h) y = Div (x, d)",
            "ReduceMax",
        ),
        ("y = Pad (x, before, , one1)", "mixes items"),
        ("y = Pad (x, turned, one)", "mixes items"),
        ("t = Transpose <perm = [0, 2, 1]> (x) y = Conv (t, taps)", "mixes items"),
        (
            "t = Transpose <perm = [0, 2, 1]> (x) y = Conv <strides = [2], pads = [1, 1]> (t, taps)",
            "mixes items",
        ),
        ("y = CumSum (x, one0)", "mixes items"),
        (
            "t = Transpose <perm = [0, 2, 1]> (x) s = MatMul (x, t) p = Softmax (s) y = MatMul (p, x)",
            "mixes items",
        ),
        (
            "l0 = Shape <start = 1, end = 2> (x) l = Squeeze (l0) a = Range (zero0, l, one0) "
            "b = Sub (l, a) c = Cast <to = 1> (b) d = Unsqueeze (c, one1) y = Add (x, d)",
            "depends on the number of tokens",
        ),
        ("y = Gather <axis = 1> (x, two0)", "mixes items"),
        ("y = ReduceProd (x, one1)", "mixes items"),
        ("y = Slice (x, one1, two, one1)", "mixes items"),
    ],
)
def test_what_is_no_such_program_is_refused(steps: str, why: str) -> None:
    model = model_of(
        f"g (float[1, length, 8] x) => (float y) {{ {steps} }}",
        opset=18,
        zero0=np.int64(0),
        two0=np.int64(2),
        one0=np.int64(1),
        one1=np.array([1], np.int64),
        two=np.array([2], np.int64),
        one=np.float32(1),
        before=np.array([2, 0], np.int64),
        turned=np.array([0, 1, 0, 0, -1, 0], np.int64),
        taps=np.ones((8, 8, 3), np.float32),
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(MixedTokensError, match=why):
        tokens_of(from_onnx(model))


@pytest.mark.parametrize("name", [name for name in NEIGHBOURS if name != "rows by token"])
def test_neighbours_are_windows(name: str) -> None:
    function = tokens_of(from_onnx(token_model([name]))).function
    windows = attentions(function, "token_window"), attentions(function, "token_filter")
    assert sorted(map(len, windows)) == [0, 1]
    assert not any(operator_name(node) in ("Conv", "Pad", "Concat") for node in post_order(function))


def test_a_convolution_with_many_neighbours_is_refused() -> None:
    model = model_of(
        "g (float[1, 8, length] x) => (float y) { y = Conv <pads = [1024, 1024]> (x, taps) }",
        opset=18,
        taps=np.ones((8, 8, 2049), np.float32),
    )
    with pytest.raises(MixedTokensError, match="mixes items"):
        tokens_of(from_onnx(model))
