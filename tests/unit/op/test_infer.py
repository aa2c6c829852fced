import numpy as np
import pytest

from intarsia import op
from intarsia.ir import (
    ANY,
    Call,
    Constant,
    DType,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    Op,
    SymbolicDim,
    TensorType,
    Type,
    Var,
)
from intarsia.op import infer_types
from intarsia.support.errors import InvalidModelError, UnsupportedModelError


def f32(*shape: int | SymbolicDim) -> TensorType:
    return TensorType(shape, DType.FLOAT32)


def var(type_: Type | None, name: str = "x") -> Var:
    return Var(name, checked_type=type_)


N, M = SymbolicDim("N"), SymbolicDim("M")
COND = var(TensorType((), DType.BOOL), "c")


def test_symbols_pass_through_operators() -> None:
    assert op.call("MatMul", var(f32(N, 3)), var(f32(3, 4), "w")).checked_type == f32(N, 4)


def test_known_arguments_take_part() -> None:
    assert op.call("Reshape", var(f32(2, 6)), Constant(np.array([3, -1]))).checked_type == f32(3, 4)
    resized = op.call(
        "Resize", var(f32(1, 1, 2, 3)), op.absent(), Constant(np.array([1, 1, 2, 2], np.float32))
    )
    assert resized.checked_type == f32(1, 1, 4, 6)


def test_the_rank_of_a_reshape_is_known_by_the_length_of_its_shape() -> None:
    shape = var(TensorType((3,), DType.INT64), "shape")
    assert op.call("Reshape", var(f32(2, 6)), shape).checked_type == f32(ANY, ANY, ANY)


def test_normalizations_that_onnx_gives_no_shape() -> None:
    x, scale = var(f32(1, 4, 3, 3)), var(f32(4), "scale")
    assert op.call("MeanVarianceNormalization", x).checked_type == x.checked_type
    assert op.call("GroupNormalization", x, scale, scale, num_groups=2).checked_type == x.checked_type


def test_element_types_that_only_a_newer_opset_takes_are_typed() -> None:
    x = var(TensorType((2,), DType.INT2))
    assert op.call("Cast", x, to=1).checked_type == f32(2)


def test_values_that_crash_onnx_are_refused_first() -> None:
    with pytest.raises(InvalidModelError, match="'GatherND' has batch_dims=-50, which no"):
        op.call("GatherND", var(f32(2, 3)), Constant(np.array([[0]])), batch_dims=-50)


def test_unknown_operators_and_domains() -> None:
    with pytest.raises(InvalidModelError, match="unknown operator 'Relu2'"):
        op.call("Relu2", var(f32(2)))
    with pytest.raises(UnsupportedModelError, match="belongs to the domain 'acme'"):
        op.call("Relu", var(f32(2)), domain="acme")


class TestInferTypes:
    def test_fills_in_what_is_unknown(self) -> None:
        x = var(f32(2, 3))
        body = Call(Op("Neg"), (Call(Op("Abs"), (x,)),))
        after = infer_types(IRModule.from_expr(Function((x,), body)))
        assert after["main"].result_type == f32(2, 3)

    def test_a_typed_module_is_returned_as_it_is(self) -> None:
        x = var(f32(2, 3))
        module = IRModule.from_expr(Function((x,), op.call("Neg", x)))
        assert infer_types(module) is module

    def test_calls_of_global_functions(self) -> None:
        x, y = var(f32(2, 3)), var(f32(2, 3))
        f = GlobalVar("f")
        module = IRModule(
            {f: Function((y,), op.call("Neg", y)), GlobalVar("main"): Function((x,), Call(f, (x,)))}
        )
        assert infer_types(module)["main"].result_type == f32(2, 3)

    def test_recursion(self) -> None:
        x = var(f32(2, 3))
        f = GlobalVar("f")
        body = If(COND, op.call("Neg", x), Call(f, (COND, x)))
        after = infer_types(IRModule({f: Function((COND, x), body)}))
        assert after["f"].checked_type == FuncType((COND.checked_type, f32(2, 3)), f32(2, 3))

    def test_branches_are_joined(self) -> None:
        x, y = var(f32(2)), var(f32(3), "y")
        after = infer_types(IRModule.from_expr(Function((COND, x, y), If(COND, x, y))))
        assert after["main"].result_type == f32(ANY)

    def test_calls_of_function_values(self) -> None:
        x, y = var(f32(2)), var(f32(2))
        inner = Function((y,), op.call("Neg", y))
        after = infer_types(IRModule.from_expr(Function((x,), Call(inner, (x,)))))
        assert after["main"].result_type == f32(2)


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        ((1, N, 16), (-1, 1, 16), (N, 1, 16)),
        ((1, N, 16), (-1, 4, 4), (N, 4, 4)),
        ((M, N, 16), (0, -1, 16), (M, N, 16)),
        ((M, N, 16), (-1, 16), (ANY, 16)),
        ((2, N, 16), (-1, 16), (ANY, 16)),
        ((N, N, 16), (0, -1, 16), (N, N, 16)),
        ((ANY, 16), (-1, 16), (ANY, 16)),
    ],
)
def test_the_open_dimension_of_a_reshape(
    before: tuple[int | SymbolicDim, ...], target: tuple[int, ...], after: tuple[int | SymbolicDim, ...]
) -> None:
    reshaped = op.call("Reshape", var(f32(*before)), Constant(np.array(target)))
    assert reshaped.checked_type == f32(*after)
