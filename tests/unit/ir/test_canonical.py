import numpy as np
import pytest
from tests.ir_programs import BOOL, add, branch, module, ones, relu, var

from intarsia.ir import (
    Attrs,
    AttrValue,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Let,
    Op,
    Span,
    Tuple,
    TupleGetItem,
    Var,
    structural_digest,
    structural_equal,
    with_fields,
)
from intarsia.target import DeviceType, VirtualDevice

CPU = VirtualDevice(DeviceType.CPU)


def agree(left: Expr | IRModule, right: Expr | IRModule) -> bool:
    """Whether two programs are equal, and their digests say the same."""
    equal = structural_equal(left, right)
    assert equal == structural_equal(right, left) == (structural_digest(left) == structural_digest(right))
    return equal


def identity(name: str) -> Function:
    x = var(name)
    return Function((x,), relu(x))


def test_names_of_variables_and_spans_do_not_count() -> None:
    assert agree(identity("x"), identity("y"))
    assert agree(relu(ones()), with_fields(relu(ones()), span=Span("m", "n")))


def test_sharing_counts() -> None:
    x = var()
    shared = relu(x)
    assert not agree(Function((x,), add(shared, shared)), Function((x,), add(relu(x), relu(x))))


def test_sharing_of_what_is_written_in_place_does_not_count() -> None:
    constant, op, absent = ones(), Op("Add"), Tuple(())
    together = Call(op, (constant, constant, absent, absent))
    apart = Call(Op("Add"), (ones(), ones(), Tuple(()), Tuple(())))
    assert agree(together, apart)


def test_which_variable_is_used_counts() -> None:
    x, y = var("x"), var("y")
    assert not agree(Function((x, y), relu(x)), Function((x, y), relu(y)))


@pytest.mark.parametrize(
    "changes",
    [
        {"op": Op("Neg")},
        {"op": Op("Relu", "custom")},
        {"op": GlobalVar("Relu")},
        {"op": Op("Relu", virtual_device=CPU)},
        {"args": ()},
        {"attrs": Attrs({"a": 1})},
        {"virtual_device": CPU},
    ],
)
def test_everything_else_counts(changes: dict[str, object]) -> None:
    call = relu(ones())
    assert not agree(call, with_fields(call, **changes))


def test_kinds_of_expressions_are_told_apart() -> None:
    x, c = var(), var("c", BOOL)
    whole = Tuple((x, x))
    kinds: list[Expr] = [
        *(x, c, ones(), whole, TupleGetItem(whole, 0), TupleGetItem(whole, 1), Op("A"), GlobalVar("A")),
        *(Call(Op("A"), ()), Function((), x), Function((x,), x), Let(x, c, x), branch(c, x, x), Tuple(())),
    ]
    digests = [structural_digest(kind) for kind in kinds]
    assert len(set(digests)) == len(kinds)
    assert not any(structural_equal(a, b) for a in kinds for b in kinds if a is not b)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, 1.0), (1, True), ("1", 1), ("a", b"a"), ((1, 2), (12,)), ((), ""), (0.0, -0.0), ((1, (2,)), (1, 2))],
)
def test_attribute_values_are_told_apart(left: AttrValue, right: AttrValue) -> None:
    assert not agree(Call(Op("A"), (), Attrs({"a": left})), Call(Op("A"), (), Attrs({"a": right})))


def test_constants_are_compared_by_value_shape_and_type() -> None:
    data = np.arange(6, dtype=np.float32)
    assert agree(Constant(data), Constant(data.copy()))
    assert agree(Constant(data.reshape(2, 3)[:, ::2]), Constant(data.reshape(2, 3)[:, ::2].copy()))
    assert not agree(Constant(data), Constant(data.reshape(2, 3)))
    assert not agree(Constant(data), Constant(data.view(np.int32)))
    assert not agree(Constant(data), Constant(data + 1))
    assert agree(Constant(np.array(["a", "b"], object)), Constant(np.array(["a", "b"], object)))
    assert not agree(Constant(np.array(["a", "b"], object)), Constant(np.array(["ab", ""], object)))


def test_constants_inside_attributes_are_compared_by_value() -> None:
    left, right = Attrs({"value": ones()}), Attrs({"value": ones()})
    assert agree(Call(Op("A"), (), left), Call(Op("A"), (), right))


def test_an_open_device_is_the_same_however_it_was_made() -> None:
    assert agree(ones(), with_fields(ones(), virtual_device=VirtualDevice()))


def test_types_count_for_variables_only() -> None:
    assert not agree(Function((var("x"),), ones()), Function((var("x", BOOL),), ones()))
    assert agree(relu(ones()), with_fields(relu(ones()), checked_type=None))


def test_modules() -> None:
    x = var()
    main = module(x, body=relu(x))
    assert agree(main, module(x, body=relu(x)))
    assert not agree(main, IRModule(main.functions, Attrs({"name": "m"})))
    assert not agree(main, IRModule({GlobalVar("other"): main["main"]}))
    assert not agree(main, main.with_function("f", main["main"]))
    assert not agree(main, main["main"])


def test_the_order_of_definition_does_not_count() -> None:
    f, g = identity("x"), Function((), ones())
    forwards = IRModule({GlobalVar("f"): f, GlobalVar("g"): g})
    assert agree(forwards, IRModule({GlobalVar("g"): g, GlobalVar("f"): f}))


def test_the_digest_is_that_of_every_other_day() -> None:
    x = Var("x")
    function = Function(
        (x,), Call(Op("Relu"), (x, Constant(np.zeros(2, np.float32))), Attrs({"a": (1, 2.5)}))
    )
    assert structural_digest(function) == "b3fe334363f776f6f8079a793d85c63d"
