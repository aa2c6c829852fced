import pytest

from intarsia.ir import DType
from intarsia.op.operator_facts import PrecisionKind
from intarsia.op.operator_table import OPERATORS
from intarsia.op.precision import takes


@pytest.mark.parametrize(
    ("dtype", "refused"),
    [(DType.FLOAT16, []), (DType.BFLOAT16, ["Compress", "Einsum", "ReverseSequence", "Shrink"])],
)
def test_what_is_lowered_and_follows_takes_the_type(dtype: DType, refused: list[str]) -> None:
    lowered = [name for name, facts in OPERATORS.items() if facts.precision is not PrecisionKind.KEEP]
    missing = [name for name in lowered if not (takes(name, 0, dtype) or takes(name, 1, dtype))]
    assert sorted(missing) == refused


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
