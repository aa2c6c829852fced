import pytest

from intarsia import op
from intarsia.ir import Call, DType, Function, IRModule, Op, TensorType, Var, with_fields
from intarsia.op import verify
from intarsia.support.errors import VerifyError

F32 = TensorType((2, 3), DType.FLOAT32)
X = Var("x", checked_type=F32)


def module(call: Call) -> IRModule:
    return IRModule.from_expr(Function((X,), call))


def test_a_right_program_passes() -> None:
    verify(module(op.call("Neg", X)))


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (Call(Op("Negg"), (X,), checked_type=F32), "unknown operator 'Negg'"),
        (
            with_fields(op.call("Neg", X), checked_type=TensorType((3, 2), DType.FLOAT32)),
            "the call returns Tensor[(2, 3), float32], but is annotated Tensor[(3, 2), float32]",
        ),
        (Call(Op("Add"), (X,), checked_type=F32), "operator 'Add' cannot be applied to"),
    ],
)
def test_complaints(call: Call, complaint: str) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(module(call))
    assert complaint in str(caught.value)
