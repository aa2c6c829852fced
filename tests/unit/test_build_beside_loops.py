import numpy as np
from tests.loop_programs import matmul, scale
from tests.small_programs import X

from intarsia.build import build
from intarsia.ir import IRModule, structural_digest
from intarsia.ir.parser import parse_module
from intarsia.measure.work import random_operators, work_of
from intarsia.op import infer_types
from intarsia.op.verify import verify


def graph() -> IRModule:
    return infer_types(
        parse_module("""
            def @main(%x: Tensor[(4,), float32]) { @twice(@twice(%x)) }
            def @twice(%x: Tensor[(4,), float32]) { Add(%x, Relu(%x)) }
        """)
    )


def with_loops() -> IRModule:
    return graph().with_function("main.fn0", scale()).with_function("product", matmul())


def test_loop_functions_that_nothing_calls_change_nothing() -> None:
    mod = with_loops()
    assert infer_types(mod) is mod
    verify(mod)
    expected = X + np.maximum(X, 0)
    np.testing.assert_array_equal(build(mod)(X), expected + np.maximum(expected, 0))


def test_names_of_new_blocks_avoid_those_of_loop_functions() -> None:
    mod = infer_types(
        parse_module("""
            def @main(%x: Tensor[(4,), float32]) {
              %0 = fn (%y: Tensor[(4,), float32]) attributes {Compiler="reference"} { Relu(%y) };
              Neg(%0(%x))
            }
        """)
    )
    mod = mod.with_function("main.marked0", scale())
    np.testing.assert_array_equal(build(mod)(X), -np.maximum(X, 0))


def test_work_is_that_of_graph_functions() -> None:
    assert work_of(with_loops()) == work_of(graph())
    assert random_operators(with_loops()) == ()


def test_loop_functions_count_in_the_digest() -> None:
    digests = {
        structural_digest(mod) for mod in (graph(), with_loops(), graph().with_function("product", matmul()))
    }
    assert len(digests) == 3
