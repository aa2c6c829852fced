"""Every language feature is found, and a pass that does not handle it is refused."""

from __future__ import annotations

import pytest
from tests.each_case import each_case
from tests.ir_programs import BOOL, F32, add, relu, var
from tests.transform_passes import program

from intarsia.ir import (
    ANY,
    Call,
    DType,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    SequenceType,
    Span,
    SymbolicDim,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
)
from intarsia.transform import Pass, PassContext, ProgramFeature, function_pass
from intarsia.transform.program_feature import UnhandledFeatureError, find_features

X = var()


def module(body: Expr, *params: Var) -> IRModule:
    return IRModule.from_expr(Function(params or (X,), body))


def closure() -> Call:
    y = var("y")
    return Call(Function((y,), add(X, y)), (X,), checked_type=F32)


FLAG = var("flag", BOOL)
BYTES = var("bytes", TensorType((2,), DType.UINT8))
LOOP = Call(Op("SequenceMap"), (X, Function((var("e"),), relu(X))), checked_type=F32)

PROGRAMS = {
    "If": (
        module(If(FLAG, relu(X), X, checked_type=F32), X, FLAG),
        {ProgramFeature.CONTROL_FLOW: "If in @main"},
    ),
    "operator with a body": (
        module(LOOP),
        {
            ProgramFeature.CONTROL_FLOW: "SequenceMap in @main",
            ProgramFeature.FUNCTION_VALUE: "Function in @main",
            ProgramFeature.CLOSURE: "Function in @main",
        },
    ),
    "Let": (module(Let(var("v"), relu(X), X)), {ProgramFeature.LET: "Let in @main"}),
    "tuple": (
        module(TupleGetItem(Tuple((X, X)), 0)),
        {ProgramFeature.TUPLE: "Tuple in @main"},
    ),
    "absent argument": (module(Call(Op("Clip"), (X, Tuple(())), checked_type=F32)), {}),
    "closure": (
        module(closure()),
        {
            ProgramFeature.FUNCTION_VALUE: "Function in @main",
            ProgramFeature.CLOSURE: "Function in @main",
        },
    ),
    "symbolic": (
        module(relu(X), var("n", TensorType((SymbolicDim("n"), 2), DType.FLOAT32))),
        {ProgramFeature.DYNAMIC_SHAPE: "Var in @main"},
    ),
    "unknown dimension": (
        module(X, X, var("n", TensorType((ANY,), DType.FLOAT32))),
        {ProgramFeature.DYNAMIC_SHAPE: "Var in @main"},
    ),
    "unknown rank": (
        module(X, X, var("n", TensorType(None, DType.FLOAT32))),
        {ProgramFeature.DYNAMIC_SHAPE: "Var in @main"},
    ),
    "bytes": (module(X, X, BYTES), {ProgramFeature.QUANTISED_TYPE: "Var in @main"}),
    "truth values": (module(X, X, FLAG), {}),
    "sequence": (
        module(X, X, Var("s", checked_type=SequenceType(F32))),
        {ProgramFeature.SEQUENCE_TYPE: "Var in @main"},
    ),
    "plain": (program(), {}),
}


@each_case("name", PROGRAMS)
def test_features(name: str) -> None:
    mod, expected = PROGRAMS[name]
    found = {feature: str(use) for feature, use in find_features(mod).items()}
    assert found == expected


def test_global_calls() -> None:
    call = Call(GlobalVar("main"), (X,), checked_type=F32)
    found = find_features(module(call))
    assert {feature: str(use) for feature, use in found.items()} == {
        ProgramFeature.GLOBAL_CALL: "call of @main in @main",
        ProgramFeature.RECURSION: "call of @main in @main",
    }


@pytest.mark.parametrize("is_cycle", [False, True])
def test_recursion_over_several_functions(is_cycle: bool) -> None:
    calls = {"main": "f", "f": "g", "g": "f" if is_cycle else "h", "h": None}
    functions = {
        GlobalVar(name): Function((X,), relu(X) if callee is None else Call(GlobalVar(callee), (X,)))
        for name, callee in calls.items()
    }
    found = find_features(IRModule(functions))
    assert (ProgramFeature.RECURSION in found) == is_cycle
    if is_cycle:
        assert str(found[ProgramFeature.RECURSION]) == "call of @f in @g"


def test_a_pass_is_refused_on_what_it_does_not_handle() -> None:
    @function_pass(opt_level=0, handles=(ProgramFeature.TUPLE,))
    def plain_only(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return function

    assert isinstance(plain_only, Pass)
    assert plain_only(program()) is not None
    branch = If(FLAG, relu(X), X, checked_type=F32, span=Span("m.onnx", "choose", "If"))
    with pytest.raises(UnhandledFeatureError) as caught:
        plain_only(module(branch, X, FLAG))
    assert str(caught.value) == (
        "pass plain_only does not handle control flow: If in @main (node 'choose' of m.onnx)\n"
        "  in pass plain_only\n"
        "help: disable it with PassContext(disabled_pass=['plain_only'])"
    )
    assert caught.value.exit_code == 3
