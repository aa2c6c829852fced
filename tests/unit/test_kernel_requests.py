"""What a program would have compiled, without compiling it."""

from __future__ import annotations

from tests.small_programs import FLAG, VECTOR, marked, vector

from intarsia.build import build
from intarsia.build.kernel_requests import kernel_requests
from intarsia.ir import Call, Function, GlobalVar, If, IRModule, Var
from intarsia.op import call


def branching() -> IRModule:
    """A marked function, called once before an If and twice in a branch, and an operator of no mark."""
    x, flag, inner = vector("x"), Var("flag", checked_type=FLAG), vector("y")
    part = marked(Function((inner,), call("Relu", inner)), Compiler="reference")
    callee = GlobalVar("part", checked_type=part.checked_type)
    once = Call(callee, (x,), checked_type=VECTOR)
    twice = Call(callee, (Call(callee, (once,), checked_type=VECTOR),), checked_type=VECTOR)
    main = Function((x, flag), If(flag, twice, call("Neg", once), checked_type=VECTOR))
    return IRModule({GlobalVar("main", checked_type=main.checked_type): main, callee: part})


def test_each_function_is_asked_for_once_with_the_number_of_its_calls() -> None:
    mod = branching()
    found = kernel_requests(mod)
    assert [(each.target.toolchain, each.calls) for each in found] == [("reference", 3), ("reference", 1)]
    with build(mod) as executable:
        assert len(executable.kernels) == len(found)
        assert [str(each.target) for each in found] == [each.source.target for each in executable.kernels]
    assert all("part" in each.module for each in found)
    assert [len(each.function.params) for each in found] == [1, 1]
