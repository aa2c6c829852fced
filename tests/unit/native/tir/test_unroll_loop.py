import pytest
from tests.tir_checks import checked, in_module, lines_of, parsed

from intarsia.ir import PrimFunc
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import For, ForKind, Store
from intarsia.native.tir import UnrollLoop, UnrollLoopConfig
from intarsia.transform import PassContext

NEST = """def prim @f(y: Buffer[(4, 3, 8), float32]) {
  for i in 4 { for j in 3 { for vectorized k in 8 { y[i, j, k] = 1f32; } } }
}"""


def unrolled(function: PrimFunc, **config: object) -> PrimFunc:
    with PassContext(config={"tir.UnrollLoop": config}):
        return checked(UnrollLoop(), function)


def stores(function: PrimFunc) -> int:
    return sum("= 1.0f32;" in line for line in lines_of(function))


def test_serial_loops_stay_by_default() -> None:
    mod = in_module(parsed(NEST))
    assert UnrollLoop()(mod) is mod


@pytest.mark.parametrize(("steps", "count"), [(2, 1), (3, 3), (11, 3), (12, 12)])
def test_loops_of_few_steps_are_unrolled(steps: int, count: int) -> None:
    assert stores(unrolled(parsed(NEST), auto_max_step=steps)) == count


def test_not_too_deep() -> None:
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 12, "auto_max_depth": 1}}):
        after = checked(UnrollLoop(), parsed(NEST), is_idempotent=False)
    assert stores(after) == 3


def test_loops_are_only_marked_if_wished() -> None:
    after = unrolled(parsed(NEST), auto_max_step=3, explicit_unroll=False)
    assert isinstance(after.body, For)
    assert after.body.kind is ForKind.SERIAL
    assert isinstance(after.body.body, For)
    assert after.body.body.kind is ForKind.UNROLLED
    assert stores(after) == 1


def test_the_attribute_of_a_function_counts_more() -> None:
    function = parsed(NEST.replace(") {", ") attributes {auto_unroll_max_step=3} {", 1))
    assert stores(checked(UnrollLoop(), function)) == 3
    assert stores(unrolled(function, auto_max_step=12)) == 3


def test_each_iteration_has_buffers_of_its_own() -> None:
    function = parsed(
        """def prim @f(x: Buffer[(3,), float32], y: Buffer[(3,), float32]) {
          for unrolled i in 3 { alloc t: Buffer[(), float32] { t[] = x[i]; y[i] = t[]; } }
        }"""
    )
    assert lines_of(checked(UnrollLoop(), function)) == [
        "alloc t: Buffer[(), float32] {",
        "  t[] = x[0];",
        "  y[0] = t[];",
        "}",
        "alloc t_1: Buffer[(), float32] {",
        "  t_1[] = x[1];",
        "  y[1] = t_1[];",
        "}",
        "alloc t_2: Buffer[(), float32] {",
        "  t_2[] = x[2];",
        "  y[2] = t_2[];",
        "}",
    ]


def test_a_loop_without_iterations_leaves_nothing() -> None:
    function = parsed("def prim @f(y: Buffer[(3,), float32]) { for unrolled i in 0 { y[i] = 1f32; } }")
    assert lines_of(checked(UnrollLoop(), function)) == []


def test_the_config_may_be_the_dataclass() -> None:
    with PassContext(config={"tir.UnrollLoop": UnrollLoopConfig(auto_max_step=12)}):
        assert stores(checked(UnrollLoop(), parsed(NEST))) == 12


def test_a_nest_with_buffers_is_written_out_in_order() -> None:
    function = parsed(
        """def prim @f(x: Buffer[(2, 2), float32], y: Buffer[(2, 2), float32]) {
          for unrolled i in 2 {
            for unrolled j in 2 { alloc t: Buffer[(), float32] { t[] = x[i, j]; y[j, i] = t[]; } }
          }
        }"""
    )
    after = checked(UnrollLoop(), function)
    texts = [line.strip() for line in lines_of(after) if "= t" in line or "= x" in line]
    assert texts == [
        *("t[] = x[0, 0];", "y[0, 0] = t[];", "t_1[] = x[0, 1];", "y[1, 0] = t_1[];"),
        *("t_2[] = x[1, 0];", "y[0, 1] = t_2[];", "t_3[] = x[1, 1];", "y[1, 1] = t_3[];"),
    ]


def test_each_statement_of_a_deep_nest_is_copied_once() -> None:
    """Equal indices are one object, so that what comes later looks at each once."""
    function = parsed(
        """def prim @f(x: Buffer[(64,), float32], y: Buffer[(4, 4, 4), float32]) {
          for unrolled i in 4 { for unrolled j in 4 { for unrolled k in 4 { y[i, j, k] = x[i * 4 + k]; } } }
        }"""
    )
    after = checked(UnrollLoop(), function)
    loads = [visit.statement.value for visit in walk(after.body) if isinstance(visit.statement, Store)]
    assert len(loads) == 64
    assert len({id(load) for load in loads}) == 16


def test_loops_over_columns_of_a_square_stay() -> None:
    """The code generator transposes the square; it cannot see it in copies."""
    text = (
        "def prim @f(x: Buffer[(8, 8), float32], y: Buffer[(8, 8), float32]) {{\n"
        "  for unrolled i in 8 {{ for vectorized j in 8 {{ y[i, j] = x[{}]; }} }}\n}}"
    )
    for indices, copies in (("j, i", 1), ("i, j", 8), ("i, i", 8), ("j, j", 8)):
        after = checked(UnrollLoop(), parsed(text.format(indices)))
        assert sum("for vectorized" in line for line in lines_of(after)) == copies
