"""Variables of lets that are written without a type."""

from __future__ import annotations

from intarsia.ir import IRModule, Let, post_order
from intarsia.ir.parser import parse_module
from intarsia.op import infer_types, verify


def typed(text: str) -> IRModule:
    after = infer_types(parse_module(f'#[version = "0.1"]\n{text}'))
    verify(after)
    return after


def let_types(mod: IRModule) -> dict[str, str]:
    lets = [node for node in post_order(mod["main"]) if isinstance(node, Let)]
    return {node.var.name: str(node.var.checked_type) for node in lets}


def test_a_variable_has_the_type_of_its_value() -> None:
    after = typed(
        "def @main(%x: Tensor[(2, 3), float32]) { let %v = Transpose(%x); let %w = Neg(%v); Add(%w, %w) }"
    )
    assert let_types(after) == {"v": "Tensor[(3, 2), float32]", "w": "Tensor[(3, 2), float32]"}
    assert str(after["main"].result_type) == "Tensor[(3, 2), float32]"
    assert infer_types(after) is after


def test_lets_of_lets_of_functions_and_of_parameters() -> None:
    after = typed("""
def @main(%x: Tensor[(2,), float32]) {
  let %v = %x;
  let %w = %v;
  let %f = fn (%a: Tensor[(2,), float32]) { let %b = Relu(%a); Neg(%b) };
  %f(%w)
}""")
    two = "Tensor[(2,), float32]"
    assert let_types(after) == {"v": two, "w": two, "b": two, "f": f"fn ({two}) -> {two}"}
    assert str(after["main"].result_type) == two


def test_a_shared_value_of_two_lets() -> None:
    after = typed("""
def @main(%x: Tensor[(2,), float32]) {
  %0 = Relu(%x);
  let %v = %0;
  let %w = %0;
  Add(%v, %w)
}""")
    assert set(let_types(after)) == {"v", "w"}
    assert set(let_types(after).values()) == {"Tensor[(2,), float32]"}


def test_what_is_written_stays() -> None:
    after = typed(
        "def @main(%x: Tensor[(?,), float32]) { let %v: Tensor[(2,), float32] = Relu(%x); Neg(%v) }"
    )
    assert let_types(after) == {"v": "Tensor[(2,), float32]"}


def test_a_long_chain() -> None:
    lines = "".join(f"  let %v{at + 1} = Neg(%v{at});\n" for at in range(1200))
    after = typed(f"def @main(%v0: Tensor[(2,), float32]) {{\n{lines}  %v1200\n}}")
    assert str(after["main"].result_type) == "Tensor[(2,), float32]"
