from collections.abc import Callable

import numpy as np
import pytest
from tests.numpy_toolchain import NumpyKernel, NumpyToolchain
from tests.small_programs import (
    FLAG,
    SCALAR,
    VECTOR,
    X,
    applied,
    checked,
    conditional,
    doubling,
    marked,
    vector,
)

from intarsia.build import build
from intarsia.ir import (
    ANY,
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    SymbolicDim,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    with_fields,
)
from intarsia.op import absent, call, tuple_get
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.runtime.plan import Branch, Invoke, RunKernel, TensorInfo

pytestmark = pytest.mark.usefixtures("numpy_toolchain")


@pytest.fixture(autouse=True)
def _numpy_is_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLCHAINS._values, "reference", NumpyToolchain)


HALF = TensorType((2,), "float32")  # type: ignore[arg-type]  # the constructor takes the spelling


def repeated(start: Expr, step: Callable[[Expr], Expr]) -> Expr:
    """A Loop that takes three steps."""
    i, go = Var("i", checked_type=TensorType((), "int64")), Var("go", checked_type=FLAG)  # type: ignore[arg-type]  # as above
    state = Var("s", checked_type=start.checked_type)
    body = Function((i, go, state), Tuple((go, step(state))))
    return tuple_get(call("Loop", Constant(np.array(3)), absent(), start, body), 0)


def functions(exe: Executable) -> list[Function]:
    return [kernel.function for kernel in exe.kernels if isinstance(kernel, NumpyKernel)]


def test_unmarked_straight_line_code_is_one_kernel() -> None:
    x = vector("x")
    main = Function((x,), call("Mul", call("Neg", x), x))
    exe = checked(IRModule.from_expr(main), X)
    assert functions(exe) == [main]
    assert exe.plan.blocks["main"].steps == (RunKernel(0, (0,), (1,)),)
    assert exe.kernel_names == ("main",)


def test_a_marked_main_is_one_kernel_of_its_toolchain() -> None:
    exe = checked(IRModule.from_expr(marked(doubling(), target="cpu -toolchain=numpy -threads=2")), X)
    assert exe.kernels[0].source.target == "cpu -toolchain=numpy -threads=2"


def test_unmarked_code_goes_to_the_target_that_is_given() -> None:
    exe = build(IRModule.from_expr(doubling()), "cpu -toolchain=numpy -threads=2")
    assert [kernel.source.target for kernel in exe.kernels] == ["cpu -toolchain=numpy -threads=2"]
    assert build(IRModule.from_expr(doubling())).kernels[0].source.target == "cpu -toolchain=reference"
    plain = build(IRModule.from_expr(doubling()), "cpu -threads=2")
    assert plain.kernels[0].source.target == "cpu -toolchain=reference -threads=2"


def test_marked_literals_keep_their_object_and_the_rest_is_one_kernel_per_operator() -> None:
    x, function = vector("x"), marked(doubling(), global_symbol="twice")
    main = Function((x,), call("Neg", applied(function, call("Neg", x))))
    exe = checked(IRModule.from_expr(main), X)
    assert exe.kernel_names == ("Neg", "twice")
    assert functions(exe)[1] is function
    assert [type(step) for step in exe.plan.blocks["main"].steps] == [RunKernel] * 3


def test_equal_functions_share_a_kernel() -> None:
    x = vector("x")
    body = applied(marked(doubling(), global_symbol="a"), applied(marked(doubling(), global_symbol="b"), x))
    other = marked(doubling(), target="cpu -toolchain=numpy -threads=2")
    exe = checked(IRModule.from_expr(Function((x,), applied(other, body))), X)
    assert len(exe.kernels) == 2


def test_marked_global_functions() -> None:
    x, f = vector("x"), GlobalVar("f")
    main = Function((x,), applied(f, applied(f, x)))
    exe = checked(IRModule({GlobalVar("main"): main, f: marked(doubling())}), X)
    assert len(exe.kernels) == 1
    assert len(exe.plan.blocks) == 1


def test_a_marked_literal_may_use_variables_from_outside() -> None:
    x, y, p = vector("x"), vector("y"), vector("p")
    inner = marked(Function((p,), call("Mul", p, y)))
    checked(IRModule.from_expr(Function((x, y), call("Neg", applied(inner, x)))), X, X + 5)


def test_nested_tuples_become_the_structure_of_the_result() -> None:
    x = vector("x")
    parts = call("Split", x, outputs=2, num_outputs=2)
    result = Tuple((x, Tuple((tuple_get(parts, 1), tuple_get(parts, 0))), Tuple(())))
    main = with_fields(Function((x,), result), attrs=Attrs({"output_names": ("a", "b", "c")}))
    exe = checked(IRModule.from_expr(main), X)
    a, (b, c), nothing = exe(X)
    assert (a.tolist(), b.tolist(), c.tolist(), nothing) == (X.tolist(), [1, 2], [-1, 0], ())
    assert [info.name for info in exe.outputs] == ["a", "b", "c"]


def test_a_program_without_operators() -> None:
    x, constant = vector("x"), Constant(X + 7)
    exe = checked(IRModule.from_expr(Function((x,), Tuple((constant, x, constant)))), X)
    assert exe.kernels == ()
    assert [info.name for info in exe.outputs] == ["output_0", "output_1", "output_2"]


def test_tuple_parameters_become_inputs() -> None:
    pair = Var("p", checked_type=TupleType((VECTOR, VECTOR)))
    main = Function((pair,), call("Sub", TupleGetItem(pair, 0), TupleGetItem(pair, 1)))
    exe = build(IRModule.from_expr(main))
    assert [info.name for info in exe.inputs] == ["p.0", "p.1"]
    np.testing.assert_array_equal(exe(X, X + 1), -np.ones(4))


def test_types_of_inputs_and_outputs() -> None:
    x = Var("x", checked_type=TensorType((SymbolicDim("n"), ANY, 3), "int8"))  # type: ignore[arg-type]  # as above
    exe = build(IRModule.from_expr(Function((x,), call("Neg", x))))
    assert exe.inputs == (TensorInfo("x", "int8", ("n", -1, 3)),)
    assert exe.outputs == (TensorInfo("output_0", "int8", ("n", -1, 3)),)


def test_only_the_taken_branch_of_an_if_runs() -> None:
    x, flag = vector("x"), Var("c", checked_type=FLAG)
    shared = call("Neg", x)
    main = Function(
        (x, flag), conditional(x, flag, call("Add", shared, shared), call("Mul", call("Sub", x, x), shared))
    )
    exe = checked(IRModule.from_expr(main), X, np.array(True))
    assert [type(step) for step in exe.plan.blocks["main"].steps] == [RunKernel, Branch]
    by_name = dict(zip(exe.kernel_names, exe.kernels, strict=True))
    runs = {name: kernel.calls for name, kernel in by_name.items() if isinstance(kernel, NumpyKernel)}
    assert runs == {"Neg": 1, "Add": 1, "Sub": 0, "Mul": 0}


def test_a_target_with_a_toolchain_takes_an_if_as_a_whole() -> None:
    x, flag = vector("x"), Var("c", checked_type=FLAG)
    main = Function((x, flag), conditional(x, flag, call("Neg", x), x))
    assert build(IRModule.from_expr(main), "cpu -toolchain=numpy").kernel_names == ("main",)


def test_branches_that_return_tuples_constants_and_parameters() -> None:
    x, flag = vector("x"), Var("c", checked_type=FLAG)
    pair = TupleType((VECTOR, VECTOR))
    choice = If(flag, Tuple((x, Constant(X))), Tuple((Constant(X * 2), x)), checked_type=pair)
    main = Function((x, flag), Tuple((TupleGetItem(choice, 1), TupleGetItem(choice, 0))))
    for truth in (True, False):
        checked(IRModule.from_expr(main), X + 9, np.array(truth))


def test_lets_and_literals_used_once_vanish() -> None:
    x, y = vector("x"), vector("y")
    inner = Function((y,), call("Mul", y, x))
    bound = vector("v")
    main = Function((x,), Let(bound, applied(inner, call("Neg", x)), call("Add", bound, bound)))
    mod = IRModule({GlobalVar("main"): main, GlobalVar("unused"): doubling()})
    exe = checked(mod, X)
    assert exe.kernel_names == ("main",)
    flag = Var("c", checked_type=FLAG)
    forced = Function((x, flag), conditional(x, flag, main.body, x))
    exe = checked(IRModule.from_expr(forced), X, np.array(True))
    assert list(exe.plan.blocks) == ["main"]


def test_literals_used_often_become_one_block_with_what_they_capture() -> None:
    x, flag, y = vector("x"), Var("c", checked_type=FLAG), vector("y")
    f = Var("f")
    literal = Function((y,), conditional(y, flag, call("Mul", call("Neg", x), y), y))
    body = Let(f, literal, applied(f, applied(f, applied(f, x))), checked_type=VECTOR)
    exe = checked(IRModule.from_expr(Function((x, flag), body)), X, np.array(True))
    assert len(exe.plan.blocks) == 2
    assert [type(step) for step in exe.plan.blocks["main"].steps].count(Invoke) == 3


def test_names_of_blocks_are_not_those_of_functions() -> None:
    x, y, p = vector("x"), vector("y"), vector("p")
    flag = Var("c", checked_type=FLAG)
    literal = Function((y,), call("Neg", y))
    mine, other = GlobalVar("main.fn0"), GlobalVar("main.marked0")
    called = applied(mine, applied(other, applied(marked(doubling()), x)))
    main = Function((x, flag), applied(literal, applied(literal, conditional(x, flag, called, x))))
    q = vector("q")
    functions = {mine: Function((p,), call("Mul", p, p)), other: Function((q,), call("Sub", q, Constant(X)))}
    exe = checked(IRModule({GlobalVar("main"): main, **functions}), X + 3, np.array(True))
    assert set(exe.plan.blocks) == {"main", "main.fn0", "main.marked0", "main.fn1"}


def test_nested_literals_do_not_grow() -> None:
    flag, x = Var("c", checked_type=FLAG), vector("x")
    function = doubling()
    for _ in range(30):
        y = vector("y")
        function = Function((y,), applied(function, call("Sub", applied(function, y), y)))
    main = Function((x, flag), conditional(x, flag, applied(function, x), x))
    exe = build(IRModule.from_expr(main))
    assert len(exe.plan.blocks) == 31


def recursive_module() -> IRModule:
    """down(n, x) = if n > 0 then down(n - 1, x) + x else x."""
    n, x, f = Var("n", checked_type=SCALAR), vector("x"), GlobalVar("down")
    one, zero = Constant(np.array(1, np.float32)), Constant(np.array(0, np.float32))
    again = call("Add", applied(f, call("Sub", n, one), x), x)
    body = conditional(x, call("Greater", n, zero), again, x)
    down = Function((n, x), body)
    m, y = Var("n", checked_type=SCALAR), vector("x")
    return IRModule({GlobalVar("main"): Function((m, y), applied(f, m, y)), f: down})


def test_recursion() -> None:
    exe = checked(recursive_module(), np.array(5, np.float32), X)
    np.testing.assert_array_equal(exe(np.array(3000, np.float32), X), X * 3001)


def test_loops_are_closed_over_what_they_use() -> None:
    x, y = vector("x"), vector("y")
    i, go, state = Var("i", checked_type=TensorType((), "int64")), Var("go", checked_type=FLAG), vector("s")  # type: ignore[arg-type]  # as above
    outside = call("Neg", x)
    inside = call("Mul", call("Add", state, outside), Constant(np.full(4, 0.5, np.float32)))
    body = Function((i, go, state), Tuple((go, call("Add", inside, y))))
    counted = Constant(np.array(3))
    loop = tuple_get(call("Loop", counted, absent(), x, body), 0)
    flag = Var("c", checked_type=FLAG)
    main = Function((x, y, flag), conditional(x, flag, call("Sub", loop, outside), x))
    checked(IRModule.from_expr(main), X, X + 1, np.array(True))


def test_bodies_of_operators_take_tuples_and_functions_from_outside() -> None:
    x, y, flag = vector("x"), Var("y", checked_type=HALF), Var("c", checked_type=FLAG)
    parts = call("Split", x, outputs=2, num_outputs=2)
    a, b = tuple_get(parts, 0), tuple_get(parts, 1)
    plus, f, t = (
        Function((y,), call("Mul", call("Add", y, b), a)),
        Var("f"),
        Var("t", checked_type=parts.checked_type),
    )
    pair = TupleType((HALF, HALF))
    bodies: list[Callable[[Expr], Expr]] = [
        lambda s: call("Add", s, b),
        lambda s: If(flag, call("Add", s, b), s, checked_type=HALF),
        lambda s: tuple_get(If(flag, Tuple((s, b)), parts, checked_type=pair), 1),
        lambda s: call("Sub", s, tuple_get(tuple_get(Tuple((s, parts)), 1), 0)),
        lambda s: applied(plus, applied(plus, s, type_=HALF), type_=HALF),
        lambda s: applied(f, s, type_=HALF),
        lambda s: call("Add", s, tuple_get(t, 1)),
    ]
    for body in bodies:
        loop = Let(t, parts, Let(f, plus, repeated(a, body)))
        main = Function((x, flag), If(flag, loop, b, checked_type=HALF))
        checked(IRModule.from_expr(main), X, np.array(True))


def test_a_marked_literal_may_use_a_tuple_from_outside() -> None:
    p, y = Var("p", checked_type=TupleType((VECTOR, VECTOR))), vector("y")
    inner = marked(Function((y,), call("Mul", call("Add", y, tuple_get(p, 0)), tuple_get(p, 1))))
    main = Function((p,), call("Neg", applied(inner, tuple_get(p, 0))))
    exe = build(IRModule.from_expr(main))
    np.testing.assert_array_equal(exe(X, X + 1), -(2 * X) * (X + 1))
    assert all(not isinstance(p.checked_type, TupleType) for each in functions(exe) for p in each.params)


def test_operators_keep_constants_and_absent_arguments_inside() -> None:
    x, flag = vector("x"), Var("c", checked_type=FLAG)
    clipped = call("Clip", x, absent(), Constant(np.array(1, np.float32)))
    exe = checked(
        IRModule.from_expr(Function((x, flag), conditional(x, flag, clipped, x))), X, np.array(True)
    )
    assert [len(function.params) for function in functions(exe)] == [1]


def test_a_chain_of_operators_is_linear_in_depth(length: int) -> None:
    x, flag = vector("x"), Var("c", checked_type=FLAG)
    value: Expr = conditional(x, flag, x, x)
    for _ in range(length):
        value = Call(Op("Neg"), (value,), checked_type=VECTOR)
    exe = build(IRModule.from_expr(Function((x, flag), value)))
    assert len(exe.kernels) == 1
    np.testing.assert_array_equal(exe(X, np.array(True)), X)


@pytest.mark.slow
def test_deeply_nested_branches() -> None:
    x, flag = vector("x"), Var("c", checked_type=FLAG)
    value: Expr = x
    for _ in range(3_000):
        value = conditional(x, flag, call("Neg", value) if value is x else value, x)
    exe = build(IRModule.from_expr(Function((x, flag), value)))
    np.testing.assert_array_equal(exe(X, np.array(True)), -X)


def test_provenance() -> None:
    x = vector("x")
    mod = IRModule({GlobalVar("main"): Function((x,), call("Add", x, Constant(X)))}, Attrs({"name": "tiny"}))
    exe = build(mod)
    assert exe.program == str(mod)
    assert exe.provenance.model == "tiny"
    assert exe.provenance.created_by.startswith("intarsia ")
    assert exe.provenance.host["toolchains"]
