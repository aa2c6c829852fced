"""Forms of one program: named or shared, inlined or lifted, fused or not; each computes the same."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.pass_checks import assert_same_results
from tests.properties.random_programs import CONDITION, SHAPE, programs

from intarsia.ir import Call, Function, GlobalVar, IRModule, Let, Op, post_order, structural_equal
from intarsia.op import verify
from intarsia.passes import (
    DefuseOps,
    FuseOps,
    Inline,
    LambdaLift,
    RemoveUnusedFunctions,
    ToANormalForm,
    ToGraphNormalForm,
)
from intarsia.transform import Pass

EXAMPLES = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def assert_equivalent(before: IRModule, after: IRModule) -> None:
    rng = np.random.default_rng(0)
    inputs = {
        str(number): np.array(True)
        if param.checked_type == CONDITION
        else rng.normal(size=SHAPE).astype(np.float32)
        for number, param in enumerate(before["main"].params)
    }
    assert_same_results(before, after, inputs)


def made(item: Pass, mod: IRModule) -> IRModule:
    """What a pass makes of a program: well formed, and the same object when it runs again."""
    after = item(mod)
    verify(after)
    assert item(after) is after
    return after


def has_let(mod: IRModule) -> bool:
    return any(isinstance(node, Let) for f in mod.graph_functions.values() for node in post_order(f))


@EXAMPLES
@given(programs(annotated=True), st.integers(1, 5))
def test_defusing_undoes_fusing(mod: IRModule, depth: int) -> None:
    fused = made(FuseOps(depth), mod)
    assert structural_equal(made(DefuseOps(), fused), mod)


@EXAMPLES
@given(programs(annotated=False), st.integers(2, 5))
def test_groups_have_two_operators_or_more_and_keep_the_bound(mod: IRModule, depth: int) -> None:
    for function in FuseOps(depth)(mod).graph_functions.values():
        for node in post_order(function):
            if isinstance(node, Function) and "Primitive" in node.attrs:
                inside = [item for item in post_order(node.body) if isinstance(item, Call)]
                assert 2 <= len(inside) <= depth
                assert all(isinstance(item.op, Op) for item in inside)


@EXAMPLES
@given(programs(annotated=False))
def test_naming_everything_and_back(mod: IRModule) -> None:
    """Lets that cannot go end up at the top of their function or branch, and stay there."""
    graph = made(ToGraphNormalForm(), mod)
    again = made(ToGraphNormalForm(), made(ToANormalForm(), graph))
    assert has_let(again) == has_let(graph)
    assert structural_equal(ToGraphNormalForm()(ToANormalForm()(again)), again)


@EXAMPLES
@given(programs(annotated=True))
def test_a_program_without_lets_comes_back(mod: IRModule) -> None:
    assume(not has_let(mod))
    assert structural_equal(ToGraphNormalForm()(ToANormalForm()(mod)), mod)


@EXAMPLES
@given(programs(compilers=(), annotated=False))
def test_forms_compute_the_same(mod: IRModule) -> None:
    graph = made(ToGraphNormalForm(), mod)
    assert_equivalent(mod, graph)
    named = made(ToANormalForm(), mod)
    assert_equivalent(mod, named)
    assert_equivalent(mod, made(FuseOps(), graph))


@EXAMPLES
@given(programs(annotated=True))
def test_lifting_leaves_no_literal(mod: IRModule) -> None:
    lifted = made(LambdaLift(), mod)
    for function in lifted.graph_functions.values():
        if "Compiler" not in function.attrs:
            assert [node for node in post_order(function) if isinstance(node, Function)] == [function]


@EXAMPLES
@given(programs(compilers=(), annotated=False))
def test_lifting_and_inlining_compute_the_same(mod: IRModule) -> None:
    lifted = made(LambdaLift(), mod)
    assert_equivalent(mod, lifted)
    names = tuple(name.name for name in lifted if name.name != "main")
    inlined = made(RemoveUnusedFunctions(), made(Inline(names=names), lifted))
    assert [name.name for name in inlined] == ["main"]
    assert_equivalent(mod, inlined)


@EXAMPLES
@given(programs(annotated=True))
def test_inlining_everything_leaves_no_call_but_of_what_is_compiled_or_called_twice(mod: IRModule) -> None:
    names = tuple(name.name for name in mod)
    after = made(Inline(names=names, literals=True), mod)
    called = [
        node.op
        for node in post_order(after["main"])
        if isinstance(node, Call) and not isinstance(node.op, Op)
    ]
    for callee in called:
        if isinstance(callee, GlobalVar):
            assert "Compiler" in after[callee.name].attrs
        elif isinstance(callee, Function) and "Compiler" not in callee.attrs:
            assert called.count(callee) > 1


@EXAMPLES
@given(programs(compilers=(), annotated=False))
def test_inlining_literals_computes_the_same(mod: IRModule) -> None:
    names = tuple(name.name for name in mod)
    assert_equivalent(mod, made(Inline(names=names, literals=True), mod))
