"""What counts as covered by native: kernels, not what the reference computes beside them."""

from __future__ import annotations

from typing import Any

from corpus.native_cover import native_cover
from tests.onnx_models import model_of

from intarsia.frontend.onnx import from_onnx

RIGHT = {"status": "right"}
BRANCH = """rows = Constant <value_ints = [3, 2, 1, 0]>()
    k = If (c) <then_branch = a () => (float[4,4] t) { t = Gather <axis = 0>(x, rows) },
    else_branch = b () => (float[4,4] e) { e = Neg(x) }>"""
"""A branch that stays one: the indices of a Gather may be wrong where it is not taken."""


def cover(text: str, *, imports: str = "", **whole: Any) -> dict[str, Any]:
    return native_cover(from_onnx(model_of(text, opset=20, imports=imports)), whole or RIGHT)


def test_an_unsupported_operator_beside_a_branch_is_refused() -> None:
    found = cover(f"g (float[4,4] x, bool c) => (float[4,4] y, float z) {{ z = Det(x) {BRANCH} y = Exp(k) }}")
    assert not found["whole"]
    assert found["refused"] == {"Det": 1}
    assert not found["opaque"]
    assert (found["calls"], found["covered"]) == (4, 3)


def test_an_opaque_operator_beside_a_branch_is_refused() -> None:
    text = f"g (float[4,4] x, bool c) => (float[4,4] y) {{ {BRANCH} y = com.microsoft.Inverse(k) }}"
    found = cover(text, imports='"com.microsoft": 1')
    assert not found["whole"]
    assert found["refused"] == {"com.microsoft::Inverse": 1}
    assert found["opaque"]


def test_branches_are_no_operators() -> None:
    found = cover(f"g (float[4,4] x, bool c) => (float[4,4] y) {{ {BRANCH} y = Exp(k) }}")
    assert found["whole"]
    assert found["refused"] == {}
    assert found["calls"] == found["covered"] == 3


def test_small_branches_count_with_the_choice_between_them() -> None:
    branch = BRANCH.replace("Gather <axis = 0>(x, rows)", "Relu(x)")
    found = cover(f"g (float[4,4] x, bool c) => (float[4,4] y) {{ {branch} y = Exp(k) }}")
    assert found["whole"]
    assert found["calls"] == found["covered"] == 4


def test_sequences_are_neither_refused_nor_covered() -> None:
    found = cover(
        f"""g (float[4,4] x, bool c) => (float[8,4] y) {{ {BRANCH} e = Exp(k) s = SequenceConstruct(k, e)
        y = ConcatFromSequence<axis=0>(s) }}"""
    )
    assert found["whole"]
    assert found["refused"] == {}
    assert found["calls"] == found["covered"] + 2


def test_what_native_does_not_run_counts_by_operator() -> None:
    found = cover("g (float[4,4] x) => (float y) { a = Exp(x) y = Det(a) }", status="refused")
    assert found == {
        "status": "right",
        "whole": False,
        "calls": 2,
        "covered": 1,
        "refused": {"Det": 1},
        "opaque": False,
    }


def test_what_native_refuses_for_no_operator_is_not_whole() -> None:
    found = cover("g (float[4,4] x) => (float[4,4] y) { y = Exp(x) }", status="refused")
    assert not found["whole"]
    assert not found["opaque"]
