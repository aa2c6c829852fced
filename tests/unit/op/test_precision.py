from collections import Counter

import pytest

from intarsia.ir import DType, Op
from intarsia.op.pattern import TOP_PATTERN
from intarsia.op.precision import _TABLE, PRECISION_KINDS, PrecisionKind, precision_kind, takes


def test_every_operator_stands_in_the_table_once() -> None:
    counted = Counter(name for names in _TABLE.values() for name in names.split())
    assert [name for name, count in counted.items() if count > 1] == []
    assert set(counted) == set(TOP_PATTERN) == set(PRECISION_KINDS)


def test_each_kind_lists_its_operators_in_order() -> None:
    for names in _TABLE.values():
        assert names.split() == sorted(names.split())


@pytest.mark.parametrize(
    ("dtype", "refused"),
    [(DType.FLOAT16, []), (DType.BFLOAT16, ["Compress", "Einsum", "ReverseSequence", "Shrink"])],
)
def test_what_is_lowered_and_follows_takes_the_type(dtype: DType, refused: list[str]) -> None:
    lowered = [name for name, kind in PRECISION_KINDS.items() if kind is not PrecisionKind.KEEP]
    missing = [name for name in lowered if not (takes(name, 0, dtype) or takes(name, 1, dtype))]
    assert sorted(missing) == refused


def test_operators_of_other_domains_keep_their_type() -> None:
    assert precision_kind(Op("MatMul")) is PrecisionKind.LOWER
    assert precision_kind(Op("MatMul", "com.example")) is PrecisionKind.KEEP


@pytest.mark.parametrize(
    ("name", "position", "expected"),
    [
        ("Resize", 0, True),
        ("Resize", 2, False),
        ("Concat", 7, True),
        ("Reshape", 1, False),
        ("Where", 0, False),
    ],
)
def test_arguments_that_may_be_narrow(name: str, position: int, expected: bool) -> None:
    assert takes(name, position, DType.FLOAT16) is expected
