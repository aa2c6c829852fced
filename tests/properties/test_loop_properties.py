import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, Phase, assume, find, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.loop_evaluator import run_prim_func
from tests.properties.random_loops import loop_functions

from intarsia.ir import (
    DType,
    GlobalVar,
    IRModule,
    PrimFunc,
    structural_digest,
    structural_equal,
    with_prim_func_fields,
)
from intarsia.ir.loop_walk import Event, scalar_post_order, scalars, walk
from intarsia.ir.parser import parse_module
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    Cast,
    For,
    IfThenElse,
    Intrinsic,
    KernelStatement,
    Literal,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.printer import print_module
from intarsia.ir.verify import verify

FEW = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def in_module(function: PrimFunc) -> IRModule:
    return IRModule({GlobalVar("f"): function})


def parts(function: PrimFunc) -> list[Statement | Scalar]:
    entered = [visit.statement for visit in walk(function.body) if visit.event is Event.ENTER]
    roots = [root for statement in entered for root in scalars(statement)]
    return [*entered, *(scalar for root in roots for scalar, _ in scalar_post_order(root))]


@FEW
@given(loop_functions())
def test_random_loop_functions_are_well_formed(function: PrimFunc) -> None:
    verify(in_module(function))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [For, Store, Allocate, IfThenElse, LoopVar, Literal, Load, Cast, Intrinsic, *ArithOp]
)
def test_random_loop_functions_hold_every_kind(kind: type[Statement | Scalar] | ArithOp) -> None:
    def holds(function: PrimFunc) -> bool:
        if isinstance(kind, ArithOp):
            return any(isinstance(part, Arith) and part.op is kind for part in parts(function))
        return any(isinstance(part, kind) for part in parts(function))

    unshrunk = settings(FEW, phases=[Phase.generate], max_examples=2000, database=None)
    assert holds(find(loop_functions(), holds, settings=unshrunk, random=Random(0)))


@FEW
@given(loop_functions())
def test_print_and_parse_give_the_same_function(function: PrimFunc) -> None:
    text = print_module(in_module(function)).text
    again = parse_module(text)
    assert structural_equal(in_module(function), again)
    assert structural_digest(in_module(function)) == structural_digest(again)
    assert print_module(again).text == text
    assert (again.prim_func("f").params, again.prim_func("f").span) == (function.params, function.span)
    assert parse_module(print_module(again).text).prim_func("f") == again.prim_func("f")


def arrays(function: PrimFunc, seed: int) -> dict[str, npt.NDArray[Any]]:
    random = np.random.default_rng(seed)
    return {
        buffer.name: random.integers(0, 100, buffer.shape).astype(buffer.dtype.numpy)
        for buffer in function.params
    }


@FEW
@given(loop_functions(), st.integers(0, 9))
def test_a_printed_and_parsed_function_computes_the_same(function: PrimFunc, seed: int) -> None:
    again = parse_module(print_module(in_module(function)).text).prim_func("f")
    first, second = arrays(function, seed), arrays(function, seed)
    run_prim_func(function, first)
    run_prim_func(again, second)
    for name, array in first.items():
        assert array.tobytes() == second[name].tobytes()


def _renamed(function: PrimFunc) -> PrimFunc:
    """The same function with other names, and each statement in a block of its own."""
    params = tuple(map(_renamed_buffer, function.params))
    return PrimFunc(params, _renamed_statement(function.body), function.attrs)


def _renamed_buffer(old: Buffer) -> Buffer:
    return replace(old, name=f"{old.name} again")


def _renamed_statement(old: Statement) -> Statement:
    match old:
        case Block():
            return Block(tuple(map(_renamed_statement, old.statements)))
        case For():
            body = _renamed_statement(old.body)
            return Block((For(LoopVar(f"{old.var.name} again"), old.extent, body, old.kind),))
        case KernelStatement():
            return old
        case Store():
            where = tuple(map(_renamed_scalar, old.indices))
            return Block((Block(()), Store(_renamed_buffer(old.buffer), where, _renamed_scalar(old.value))))
        case Allocate():
            return Allocate(_renamed_buffer(old.buffer), _renamed_statement(old.body))
        case IfThenElse():
            otherwise = None if old.otherwise is None else _renamed_statement(old.otherwise)
            return IfThenElse(_renamed_scalar(old.cond), _renamed_statement(old.then), otherwise)


def _renamed_scalar(old: Scalar) -> Scalar:
    match old:
        case LoopVar():
            return LoopVar(f"{old.name} again")
        case Literal():
            return Literal(old.value, old.dtype)
        case Load():
            return Load(_renamed_buffer(old.buffer), tuple(map(_renamed_scalar, old.indices)))
        case Cast():
            return Cast(_renamed_scalar(old.value), old.dtype)
        case Arith():
            return Arith(old.op, tuple(map(_renamed_scalar, old.operands)))
        case Intrinsic():
            return Intrinsic(old.name, tuple(map(_renamed_scalar, old.args)), old.dtype)


@FEW
@given(loop_functions())
def test_names_spans_and_blocks_do_not_count(function: PrimFunc) -> None:
    other = _renamed(function)
    verify(in_module(other))
    assert structural_equal(function, other)
    assert structural_digest(function) == structural_digest(other)


CHANGES: dict[str, Callable[[PrimFunc], PrimFunc]] = {
    "attributes": lambda f: replace(f, attrs=f.attrs.updated(threads=7)),
    "parameter": lambda f: replace(f, params=(*f.params, Buffer("one more", (), DType.FLOAT32))),
    "statement": lambda f: replace(f, body=Block((f.body, IfThenElse(Literal(True, DType.BOOL), Block(()))))),
    "else": lambda f: replace(f, body=_with_first(f.body, IfThenElse, _toggle_else)),
    "extent": lambda f: replace(f, body=_with_first(f.body, For, lambda s: replace(s, extent=s.extent + 1))),
    "value": lambda f: replace(f, body=_with_first(f.body, Store, _twice)),
}


def _toggle_else(statement: IfThenElse) -> Statement:
    return replace(statement, otherwise=Block(()) if statement.otherwise is None else None)


def _twice(statement: Store) -> Statement:
    chosen = Arith(ArithOp.SELECT, (Literal(True, DType.BOOL), statement.value, statement.value))
    return replace(statement, value=chosen)


def _with_first(body: Statement, kind: type[Statement], change: Callable[[Any], Statement]) -> Statement:
    """The statement with the first of a kind changed; the same if there is none on the outside."""
    match body:
        case Block() if body.statements:
            changed = [_with_first(one, kind, change) for one in body.statements]
            first = next((n for n, one in enumerate(changed) if one is not body.statements[n]), None)
            if first is None:
                return body
            return Block((*body.statements[:first], changed[first], *body.statements[first + 1 :]))
        case _ if isinstance(body, kind):
            return change(body)
        case For() | Allocate():
            inside = _with_first(body.body, kind, change)
            return body if inside is body.body else replace(body, body=inside)
        case _:
            return body


@FEW
@given(loop_functions(), st.sampled_from(sorted(CHANGES)))
def test_what_is_computed_counts(function: PrimFunc, change: str) -> None:
    other = CHANGES[change](function)
    assume(other != function)
    assert not structural_equal(function, other)
    assert structural_digest(function) != structural_digest(other)


@FEW
@given(loop_functions(), loop_functions())
def test_digests_agree_exactly_where_functions_are_equal(left: PrimFunc, right: PrimFunc) -> None:
    assert structural_equal(left, right) == (structural_digest(left) == structural_digest(right))
    if left == right:
        assert structural_equal(left, right)


@FEW
@given(loop_functions())
def test_a_change_to_the_same_value_is_no_change(function: PrimFunc) -> None:
    again = parse_module(print_module(in_module(function)).text).prim_func("f")
    assert with_prim_func_fields(function, params=again.params, attrs=again.attrs) is function
    assert (with_prim_func_fields(function, span=None) is function) == (function.span is None)


@pytest.mark.slow
@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck))
@given(functions=st.lists(loop_functions(), min_size=20, max_size=20))
def test_digests_are_the_same_in_every_process(
    functions: list[PrimFunc], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("loops")
    mod = IRModule({GlobalVar(f"f{number}"): function for number, function in enumerate(functions)})
    (folder / "0.txt").write_text(print_module(mod).text, encoding="utf-8")
    np.savez(folder / "0.npz")
    code = Path(__file__).with_name("print_digests.py")
    for seed in ("1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, str(code), str(folder), "1"]
        run = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
        assert run.stdout == f'["{structural_digest(mod)}"]'
