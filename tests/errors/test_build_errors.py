from collections.abc import Callable

import pytest
from tests.numpy_toolchain import NumpyToolchain
from tests.small_programs import (
    FLAG,
    VECTOR,
    applied,
    conditional,
    doubling,
    marked,
    vector,
)

from intarsia.build import build
from intarsia.ir import (
    Attrs,
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    Tuple,
    Var,
    with_fields,
)
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import (
    CompileError,
    InvalidModelError,
    MissingToolchainError,
    UnsupportedModelError,
    UsageError,
)

pytestmark = pytest.mark.usefixtures("numpy_toolchain")


@pytest.fixture(autouse=True)
def _numpy_is_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLCHAINS._values, "reference", NumpyToolchain)


@pytest.mark.parametrize(
    "use",
    [
        lambda x, flag, f: Tuple((conditional(x, flag, x, x), f)),
        lambda x, flag, f: If(flag, f, doubling(), checked_type=f.checked_type),
        lambda x, flag, f: If(flag, f, x),
        lambda x, flag, f: applied(GlobalVar("main"), x, f),
    ],
)
def test_functions_as_values_are_refused(use: Callable[[Expr, Expr, Function], Expr]) -> None:
    x, flag = vector("x"), Var("c", checked_type=FLAG)
    main = Function((x, flag), use(x, flag, doubling()))
    with pytest.raises(UnsupportedModelError) as caught:
        build(IRModule.from_expr(main))
    assert str(caught.value) == (
        "in @main, a function is used as a value; expected that calls can be resolved before the run"
    )


def test_a_local_function_that_calls_itself_is_refused() -> None:
    x, y, f, flag = vector("x"), vector("y"), Var("f"), Var("c", checked_type=FLAG)
    literal = Function((y,), conditional(y, flag, applied(f, y), y))
    main = Function((x, flag), Let(f, literal, applied(f, x), checked_type=VECTOR))
    with pytest.raises(UnsupportedModelError) as caught:
        build(IRModule.from_expr(main))
    assert str(caught.value) == (
        "in @main, a local function calls itself; expected that calls can be resolved before the run\n"
        "help: make it a global function"
    )


def test_a_local_function_that_calls_itself_in_a_body_is_refused() -> None:
    x, y, f, flag = vector("x"), vector("y"), Var("f"), Var("c", checked_type=FLAG)
    i, go, state = Var("i", checked_type=FLAG), Var("go", checked_type=FLAG), vector("s")
    body = Function((i, go, state), Tuple((go, applied(f, state))))
    loop = Call(Op("Loop"), (flag, flag, x, body), checked_type=VECTOR)
    main = Function((x, flag), conditional(x, flag, Let(f, Function((y,), applied(f, y)), loop), x))
    with pytest.raises(UnsupportedModelError) as caught:
        build(IRModule.from_expr(main))
    assert str(caught.value) == (
        "in @main, a local function calls itself; expected that calls can be resolved before the run\n"
        "help: make it a global function"
    )


def test_programs_that_are_not_whole() -> None:
    x = vector("x")
    with pytest.raises(InvalidModelError, match="the program has no function @main"):
        build(IRModule({}))
    with pytest.raises(InvalidModelError, match="the program has no function @g"):
        build(IRModule.from_expr(Function((x,), applied(GlobalVar("g"), x))))
    mod = IRModule(
        {GlobalVar("main"): Function((x,), applied(GlobalVar("f"), x, x)), GlobalVar("f"): doubling()}
    )
    with pytest.raises(InvalidModelError) as caught:
        build(mod)
    assert str(caught.value) == "in @main, @f is called with 2 arguments, expected 1"


def test_toolchains_that_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    x = vector("x")
    with pytest.raises(MissingToolchainError):
        build(IRModule.from_expr(with_fields(doubling(), attrs=Attrs({"Compiler": "nowhere"}))))
    with pytest.raises(UsageError) as conflict:
        build(IRModule.from_expr(marked(doubling(), target="cpu -toolchain=other")))
    assert str(conflict.value) == (
        'a function is marked Compiler="numpy" but target="cpu -toolchain=other", expected one toolchain'
    )

    def refuse(self: object, function: object, target: object, module: object = None) -> None:
        raise CompileError("numpy refuses")

    monkeypatch.setattr(NumpyToolchain, "compile", refuse)
    with pytest.raises(CompileError) as caught:
        build(IRModule.from_expr(Function((x,), applied(marked(doubling(), global_symbol="twice"), x))))
    assert str(caught.value) == "numpy refuses\n  in kernel twice"
