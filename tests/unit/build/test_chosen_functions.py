"""Functions of which only the run knows which one is called: calls of them become branches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.function_values import CHOICE, NESTED, program

from intarsia.build import build
from intarsia.passes import PlanDevices
from intarsia.runtime.plan import Branch, Invoke
from intarsia.support.errors import UnsupportedModelError

X = np.array([1.0, -2.0], np.float32)

LOCAL = """
def @main(%c: flag, %x: f32) {
  let %h: fn (f32) -> f32 = if (%c) {
    let %v: f32 = Exp(%x);
    %0 = Neg(%v);
    fn (%a: f32) { Add(%a, %v) }
  } else { fn (%b: f32) { Neg(%b) } };
  %h(%x)
}
"""
LOCAL_CONDITION = """
def @main(%c: flag, %x: f32) {
  let %h: fn (f32) -> f32 = if (%c) {
    let %d: flag = Not(%c);
    if (%d) { fn (%a: f32) { Exp(%a) } } else { fn (%a: f32) { Neg(%a) } }
  } else { fn (%b: f32) { Neg(%b) } };
  %h(%x)
}
"""
BODY = """
def @main(%c: flag, %n: Tensor[(), int64], %x: f32) {
  let %f: fn (f32) -> f32 = fn (%a: f32) { Neg(%a) };
  let %g: fn (f32) -> f32 = fn (%b: f32) { Exp(%b) };
  let %h: fn (f32) -> f32 = if (%c) { %f } else { %g };
  %0 = fn (%i: Tensor[(), int64], %go: flag, %s: f32) { (%go, %h(%s)) };
  Loop(%n, %c, %x, %0, outputs=1).0
}
"""


@pytest.mark.parametrize("target", ["cpu -toolchain=reference", "cpu -toolchain=onnxruntime"])
def test_a_call_of_one_of_two_functions_is_a_branch(target: str) -> None:
    exe = build(program(CHOICE), target)
    for flag, first in ((True, X + np.maximum(X, 0)), (False, X - X)):
        second = first + np.maximum(X, 0) if flag else first - X
        np.testing.assert_array_equal(exe(np.array(flag), X), first * second)


def test_each_of_the_functions_is_one_block_however_often_it_is_called() -> None:
    plan = build(program(CHOICE)).plan
    branches = [step for step in plan.blocks["main"].steps if isinstance(step, Branch)]
    called = [
        [step.block for step in steps if isinstance(step, Invoke)]
        for branch in branches
        for steps in (branch.true_steps, branch.false_steps)
    ]
    assert called == [["main.fn0"], ["main.fn1"]] * 2
    assert set(plan.blocks) == {"main", "main.fn0", "main.fn1"}


@settings(max_examples=examples(10), deadline=None)
@given(st.booleans(), st.booleans())
def test_choices_in_choices_tuples_and_literals(c: bool, d: bool) -> None:
    result = build(program(NESTED))(np.array(c), np.array(d), X)
    first = np.exp(X) if c else X
    called = [(-x if d else x + X) if c else x + x for x in (first, X)]
    np.testing.assert_allclose(result, called[0] * X + called[1] * X, rtol=1e-6)


@pytest.mark.parametrize("flag", [True, False])
def test_on_devices(flag: bool) -> None:
    text = CHOICE.replace("= Relu(%x)", "= Relu(%x) @device(mock:1)")
    text = text.replace("Sub(%b, %x)", "Sub(%b, %x) @device(cpu:0)")
    with build(PlanDevices()(program(text))) as exe:
        assert exe.plan.devices == ("cpu:0", "mock:1")
        np.testing.assert_array_equal(exe(np.array(flag), X), build(program(CHOICE))(np.array(flag), X))


@pytest.mark.parametrize("text", [LOCAL, LOCAL_CONDITION], ids=["value", "condition"])
def test_what_is_computed_in_a_branch_is_not_there_behind_it(text: str) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        build(program(text))
    assert str(caught.value) == (
        "in @main, a function that is made in a branch uses what is computed there, and is called elsewhere; "
        "expected that calls can be resolved before the run\nhelp: compute it before the branch"
    )


def test_a_call_in_the_branch_itself_may_use_it() -> None:
    text = LOCAL.replace(
        "fn (%a: f32) { Add(%a, %v) }",
        "let %k: fn (f32) -> f32 = fn (%a: f32) { Add(%a, %v) };"
        " let %w: f32 = %k(%x); fn (%e: f32) { Neg(%e) }",
    )
    np.testing.assert_array_equal(build(program(text))(np.array(True), X), -X)


def test_bodies_of_operators_cannot_call_them() -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        build(program(BODY))
    assert str(caught.value) == (
        "in @main, what an operator or a marked function uses is a function that the run chooses; "
        "expected that calls can be resolved before the run\nhelp: choose between calls instead of functions"
    )
