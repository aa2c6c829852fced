"""Global functions that nothing reaches."""

from tests.pass_checks import checked

from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.op import infer_types
from intarsia.passes import RemoveUnusedFunctions

PROGRAM = """
    def @main(%x: Tensor[(2,), float32], %c: Tensor[(), bool]) { @f(%x, %c) }
    def @f(%x: Tensor[(2,), float32], %c: Tensor[(), bool]) { if (%c) { @g(%x) } else { %x } }
    def @g(%x: Tensor[(2,), float32]) { Relu(%x) }
    def @exported(%x: Tensor[(2,), float32]) attributes {global_symbol="exported"} { @only_here(%x) }
    def @only_here(%x: Tensor[(2,), float32]) { Neg(%x) }
"""


def program() -> IRModule:
    return infer_types(parse_module(PROGRAM))


def names(mod: IRModule) -> list[str]:
    return [var.name for var in mod]


def test_what_main_does_not_reach_goes() -> None:
    assert names(checked(RemoveUnusedFunctions(), program())) == ["main", "f", "g"]


def test_entries_and_what_they_reach_stay() -> None:
    made = RemoveUnusedFunctions(("main", "exported"))
    mod = program()
    assert made(mod) is mod
    assert names(RemoveUnusedFunctions(("only_here", "unknown"))(mod)) == ["only_here"]


def test_a_library_without_entries_is_left_alone() -> None:
    mod = program()
    assert RemoveUnusedFunctions(("unknown",))(mod) is mod
