"""What the emitter writes computes what the interpreter computes, on random loop functions."""

import re
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import compile_kernel, x86_sets
from tests.properties.random_kernels import kernels
from tests.properties.random_loops import loop_functions
from tests.tir_checks import assert_same_bits, in_module, parsed, random_arrays, results

from intarsia.ir import PrimFunc
from intarsia.ir.prim_func import Allocate, Block, For, ForKind, IfThenElse, Statement
from intarsia.ir.printer import print_module
from intarsia.support.errors import ExecutionError

SETTINGS = settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(kernels(), st.sampled_from(sorted(x86_sets())), st.booleans())
def test_kernels_compute_the_same_bits(function: PrimFunc, isa: str, checked: bool) -> None:
    arrays = random_arrays(function)
    expected = results(function, arrays)
    kernel = compile_kernel(function, x86_sets()[isa], bounds_checked=checked)
    kernel(arrays)
    assert kernel.failed == (0, 0)
    assert_same_bits(arrays, expected)


@SETTINGS
@given(kernels(), st.sampled_from(sorted(x86_sets())))
def test_kernels_in_registers_compute_the_same_bits(function: PrimFunc, isa: str) -> None:
    """All serial loops are expanded, and what is allocated is held in registers where that can be."""
    text = print_module(in_module(function)).text
    text = re.sub(r"\bfor (\w+) in", r"for unrolled \1 in", text)
    text = re.sub(r"(alloc .*Buffer\[\([^)]*\), \w+)\]", r"\1, register]", text)
    changed = parsed(text)
    arrays = random_arrays(function)
    expected = results(function, arrays)
    compile_kernel(changed, x86_sets()[isa])(arrays)
    assert_same_bits(arrays, expected)


@SETTINGS
@given(loop_functions(), st.sampled_from(sorted(x86_sets())), st.booleans())
def test_loop_functions_run_in_order(function: PrimFunc, isa: str, checked: bool) -> None:
    """Their loops do not hold what their kinds promise, so they are made serial."""
    function = replace(function, body=_in_order(function.body))
    arrays = random_arrays(function)
    try:
        expected = results(function, arrays)
    except ExecutionError:
        assume(False)  # a result that the language leaves undefined
    kernel = compile_kernel(function, x86_sets()[isa], bounds_checked=checked)
    kernel(arrays)
    assert kernel.failed == (0, 0)
    for found, right in zip(arrays, expected, strict=True):
        if found.dtype.kind in "biu":
            np.testing.assert_array_equal(found, right)
        else:
            wide = found.astype(np.float64), right.astype(np.float64)
            np.testing.assert_allclose(*wide, rtol=2e-2, atol=1e-3)


def _in_order(statement: Statement) -> Statement:
    match statement:
        case For():
            kind = ForKind.UNROLLED if statement.kind is ForKind.UNROLLED else ForKind.SERIAL
            return For(statement.var, statement.extent, _in_order(statement.body), kind)
        case Block():
            return Block(tuple(_in_order(inner) for inner in statement.statements))
        case Allocate():
            return Allocate(statement.buffer, _in_order(statement.body))
        case IfThenElse():
            otherwise = None if statement.otherwise is None else _in_order(statement.otherwise)
            return IfThenElse(statement.cond, _in_order(statement.then), otherwise)
        case _:
            return statement
