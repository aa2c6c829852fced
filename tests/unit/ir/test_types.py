import numpy as np
import pytest
from tests.each_case import each_case

from intarsia.ir import (
    ABSENT,
    ANY,
    DType,
    FuncType,
    OptionalType,
    SequenceType,
    SymbolicDim,
    TensorType,
    TupleType,
    Type,
    is_compatible,
    join_types,
)

F32, I64 = DType.FLOAT32, DType.INT64
N = SymbolicDim("n")
A, B = TensorType((2, 3), F32), TensorType((2, 4), F32)
OPEN, UNRANKED = TensorType((N, 3), F32), TensorType(None, F32)


@pytest.mark.parametrize(
    ("own_type", "text"),
    [
        (A, "Tensor[(2, 3), float32]"),
        (TensorType((5,), I64), "Tensor[(5,), int64]"),
        (TensorType((), DType.BOOL), "Tensor[(), bool]"),
        (TensorType((N, ANY, SymbolicDim("a b")), F32), 'Tensor[(n, ?, "a b"), float32]'),
        (UNRANKED, "Tensor[?, float32]"),
        (ABSENT, "()"),
        (TupleType((A,)), "(Tensor[(2, 3), float32],)"),
        (FuncType((A, None), None), "fn (Tensor[(2, 3), float32], _) -> _"),
        (SequenceType(OptionalType(UNRANKED)), "Sequence[Optional[Tensor[?, float32]]]"),
    ],
)
def test_text(own_type: Type, text: str) -> None:
    assert str(own_type) == text


def test_are_compared_and_hashed_by_content() -> None:
    assert len({TensorType((2, 3), F32), TensorType((2, 3), DType("float32")), B}) == 2


def test_lists_are_accepted_as_shapes() -> None:
    assert TensorType([2, 3], F32) == A  # type: ignore[arg-type]  # accepted, and made a tuple


def test_of_an_array() -> None:
    assert TensorType.of(np.zeros((2, 3), np.float32)) == A


def test_static_shapes() -> None:
    assert A.is_static
    assert A.static_shape == (2, 3)
    for dynamic in (OPEN, UNRANKED):
        assert not dynamic.is_static
        with pytest.raises(ValueError, match="no static shape"):
            _ = dynamic.static_shape


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        *((A, A), (A, None), (None, A), (A, OPEN), (OPEN, B.__class__((7, 3), F32)), (UNRANKED, A)),
        (TupleType((A, B)), TupleType((OPEN, UNRANKED))),
        (FuncType((A,), None), FuncType((OPEN,), A)),
        (SequenceType(A), SequenceType(UNRANKED)),
        (OptionalType(A), OptionalType(OPEN)),
    ],
)
def test_compatible(found: Type | None, expected: Type | None) -> None:
    assert is_compatible(found, expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        *((A, B), (A, TensorType((2, 3), I64)), (A, TensorType((2, 3, 1), F32)), (A, TupleType((A,)))),
        (TupleType((A,)), TupleType((A, A))),
        (TupleType((A,)), TupleType((B,))),
        (FuncType((A,), A), FuncType((B,), A)),
        (FuncType((A,), A), FuncType((A,), B)),
        (FuncType((), A), FuncType((A,), A)),
        (SequenceType(A), SequenceType(B)),
        (SequenceType(A), OptionalType(A)),
    ],
)
def test_incompatible(found: Type, expected: Type) -> None:
    assert not is_compatible(found, expected)
    assert not is_compatible(expected, found)


@each_case(
    ("left", "right", "joined"),
    [
        (A, A, A),
        (A, B, TensorType((2, ANY), F32)),
        (A, OPEN, TensorType((ANY, 3), F32)),
        (A, UNRANKED, UNRANKED),
        (A, TensorType((2,), F32), UNRANKED),
        (A, TensorType((2, 3), I64), None),
        (A, ABSENT, None),
        (TupleType((A, A)), TupleType((A, B)), TupleType((A, TensorType((2, ANY), F32)))),
        (TupleType((A,)), TupleType((TensorType((2, 3), I64),)), None),
        (SequenceType(A), SequenceType(B), SequenceType(TensorType((2, ANY), F32))),
        (OptionalType(A), OptionalType(TensorType((), I64)), None),
        (OptionalType(A), SequenceType(A), None),
    ],
)
def test_join(left: Type, right: Type, joined: Type | None) -> None:
    assert join_types(left, right) == joined
    assert join_types(right, left) == joined
