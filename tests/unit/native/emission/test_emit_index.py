"""Where elements lie, as sums of multiples of loop variables."""

import pytest
from tests.tir_checks import parsed

from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import Load, Store
from intarsia.native.emission.index import AccessPlan, access_plan


def plan_of(shape: str, indices: str) -> AccessPlan | None:
    text = f"""def prim @f(x: Buffer[{shape}, float32], y: Buffer[(600,), float32]) {{
      for i in 24 {{ for j in 5 {{ y[i] = x[{indices}]; }} }}
    }}"""
    (store,) = [visit.statement for visit in walk(parsed(text).body) if isinstance(visit.statement, Store)]
    assert isinstance(store.value, Load)
    return access_plan(store.value.buffer, store.value.indices)


@pytest.mark.parametrize(
    ("shape", "indices", "expected"),
    [
        ("(24, 5)", "i, j", AccessPlan(0, (("i", 5), ("j", 1)))),
        ("(24, 7)", "i, j + 2", AccessPlan(2, (("i", 7), ("j", 1)))),
        ("(4, 6, 5)", "i floordiv 6, i mod 6, j", AccessPlan(0, (("i", 5), ("j", 1)))),
        ("(9, 8)", "(i + 3) floordiv 8 + 1, (i + 3) mod 8", AccessPlan(11, (("i", 1),))),
        (
            "(2, 3, 4, 5)",
            "(i floordiv 4) floordiv 3, (i floordiv 4) mod 3, i mod 4, j",
            AccessPlan(0, (("i", 5), ("j", 1))),
        ),
        (
            "(2, 3, 4, 5)",  # as the simplifier writes it: the quotient of a quotient is one
            "i floordiv 12, (i floordiv 4) mod 3, i mod 4, j",
            AccessPlan(0, (("i", 5), ("j", 1))),
        ),
        (
            "(2, 3, 2, 2, 5)",
            "i floordiv 12, (i floordiv 4) mod 3, (i floordiv 2) mod 2, i mod 2, j",
            AccessPlan(0, (("i", 5), ("j", 1))),
        ),
    ],
)
def test_pieces_of_a_counter_come_together(shape: str, indices: str, expected: AccessPlan) -> None:
    found = plan_of(shape, indices)
    assert found is not None
    assert (found.const, sorted(found.terms)) == (expected.const, sorted(expected.terms))


@pytest.mark.parametrize(
    ("shape", "indices"),
    [
        ("(4, 7)", "i floordiv 6, i mod 6"),  # rows are longer than what is counted in them
        ("(24, 24)", "i floordiv 6, j"),
        ("(600,)", "i * j"),
        ("(2, 3, 4, 5)", "i floordiv 8, (i floordiv 4) mod 3, i mod 4, j"),
    ],
)
def test_others_are_no_sums(shape: str, indices: str) -> None:
    assert plan_of(shape, indices) is None
