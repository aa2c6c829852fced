import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.ir_programs import assert_same_facts, assert_same_program
from tests.properties.random_programs import programs

from intarsia.ir import (
    Call,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Op,
    Span,
    Tuple,
    TupleGetItem,
    Var,
    children,
    post_order,
    rewrite,
    structural_digest,
    structural_equal,
    with_fields,
)
from intarsia.ir.parser import parse_expr, parse_module
from intarsia.ir.printer import print_expr, print_module
from intarsia.ir.scope import is_atom, place
from intarsia.ir.verify import verify

FEW = settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FEW
@given(programs())
def test_random_programs_are_well_formed_and_typed(mod: IRModule) -> None:
    verify(mod, require_types=True)


@pytest.mark.parametrize("kind", [Call, Function, If, Let, Tuple, TupleGetItem, Var])
def test_random_programs_hold_every_kind_of_expression(kind: type[Expr]) -> None:
    unshrunk = settings(FEW, phases=[Phase.generate], max_examples=examples(500, quick=50), database=None)
    mod = find(programs(), lambda mod: _holds(mod, kind), settings=unshrunk, random=Random(0))
    assert _holds(mod, kind)


def _holds(mod: IRModule, kind: type[Expr]) -> bool:
    return any(isinstance(expr, kind) for expr in post_order(mod["main"].body))


@FEW
@given(programs())
def test_print_and_parse_give_the_same_program(mod: IRModule) -> None:
    printed = print_module(mod)
    assert_same_program(mod, parse_module(printed.text, printed.constants))


@FEW
@given(programs(), st.data())
def test_print_and_parse_give_the_same_expression(mod: IRModule, data: st.DataObject) -> None:
    expr = data.draw(st.sampled_from(list(post_order(mod["main"]))))
    printed = print_expr(expr)
    again = parse_expr(printed.text, printed.constants)
    assert structural_equal(expr, again)
    assert_same_facts(expr, again)


@FEW
@given(programs())
def test_text_without_annotations_still_parses(mod: IRModule) -> None:
    printed = print_module(mod, show_types=False, show_devices=False, show_spans=False)
    again = print_module(parse_module(printed.text, printed.constants), show_types=False)
    assert again.text == printed.text


@FEW
@given(programs())
def test_digests_agree_exactly_where_programs_are_equal(mod: IRModule) -> None:
    printed = print_module(mod)
    again = parse_module(printed.text, printed.constants)
    assert structural_digest(again) == structural_digest(mod)
    other = with_fields(mod["main"], body=Call(Op("Neg"), (mod["main"].body,)))
    changed = mod.with_function("main", other)
    assert not structural_equal(mod, changed)
    assert structural_digest(mod) != structural_digest(changed)


@pytest.mark.processes
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(mods=st.lists(programs(), min_size=5, max_size=5))
def test_digests_are_the_same_in_every_process(
    mods: list[IRModule], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("programs")
    for number, mod in enumerate(mods):
        printed = print_module(mod)
        (folder / f"{number}.txt").write_text(printed.text, encoding="utf-8")
        np.savez(folder / f"{number}.npz", *printed.constants)
    code = Path(__file__).with_name("print_digests.py")
    for seed in ("1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run(
            [sys.executable, str(code), str(folder), str(len(mods))],
            env=environment,
            capture_output=True,
            check=True,
            text=True,
        )
        assert json.loads(run.stdout) == [structural_digest(mod) for mod in mods]


@FEW
@given(programs())
def test_post_order_has_children_first_and_everything_once(mod: IRModule) -> None:
    seen: set[Expr] = set()
    for expr in post_order(mod["main"]):
        assert expr not in seen
        assert seen.issuperset(children(expr))
        seen.add(expr)
    assert mod["main"] in seen


@FEW
@given(programs())
def test_rewriting_with_the_identity_returns_the_same_object(mod: IRModule) -> None:
    assert rewrite(mod["main"], lambda expr: expr) is mod["main"]


@FEW
@given(programs())
def test_rewriting_keeps_sharing_and_facts(mod: IRModule) -> None:
    old = mod["main"]
    count = 0

    def rename(expr: Expr) -> Expr:
        nonlocal count
        count += 1
        return with_fields(expr, name="Tanh") if isinstance(expr, Op) and expr.name == "Relu" else expr

    new = rewrite(old, rename)
    before, after = list(post_order(old)), list(post_order(new))
    assert count == len(before) == len(after)
    for a, b in zip(before, after, strict=True):
        assert (type(a), a.checked_type, a.virtual_device, a.span) == (
            type(b),
            b.checked_type,
            b.virtual_device,
            b.span,
        )


@FEW
@given(programs())
def test_with_fields_of_the_same_values_is_the_same_object(mod: IRModule) -> None:
    for expr in post_order(mod["main"]):
        names = [name for name in type(expr).__match_args__ if not name.startswith("_")]
        same = {name: getattr(expr, name) for name in [*names, "checked_type", "virtual_device", "span"]}
        assert with_fields(expr, **same) is expr
        changed = with_fields(expr, span=Span("elsewhere", "node"))
        assert changed is not expr
        assert (changed.checked_type, changed.virtual_device) == (expr.checked_type, expr.virtual_device)
        assert all(a is b for a, b in zip(children(changed), children(expr), strict=True))


@FEW
@given(programs())
def test_every_compound_expression_is_placed_once_before_its_uses(mod: IRModule) -> None:
    placed = place(mod["main"])
    members = [expr for scope in placed.members for expr in placed.members[scope]]
    compound = [expr for expr in post_order(mod["main"]) if not is_atom(expr)]
    assert sorted(map(id, members)) == sorted(map(id, compound))
    home = {expr: scope for scope, exprs in placed.members.items() for expr in exprs}
    for expr in compound:
        for position, child in enumerate(children(expr)):
            used_in = placed.inner.get((expr, position), home[expr])
            assert is_atom(child) or home[child].common(used_in) is home[child]
