"""Equal parts of programs."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from tests.layered_programs import layer, layers, weight

from intarsia.frontend.onnx.importer import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.frontend.zoo.bert import build
from intarsia.frontend.zoo.transformer import TextSize
from intarsia.ir import Constant, Expr, Function, IRModule, Let, TensorType, Tuple, Var, structural_digest
from intarsia.op import call
from intarsia.passes import InferType, ToANormalForm
from intarsia.tune.repeated import repeated_parts
from intarsia.tune.repeated.repeated_block import RepeatedBlock


def found(mod: IRModule) -> list[tuple[int, int]]:
    """How often each part is there, and how many operators it has."""
    return [(len(part.occurrences), part.operators) for part in repeated_parts(mod)]


def test_layers_with_other_weights_are_equal() -> None:
    (part,) = repeated_parts(layers(6))
    assert (len(part.occurrences), part.operators) == (6, 5)
    assert [len(each.arguments) for each in part.occurrences] == [1] * 6
    assert len({structural_digest(each.function) for each in part.occurrences}) == 6


def test_the_part_is_a_program() -> None:
    (part,) = repeated_parts(layers(2))
    main = part.module["main"]
    assert [str(param.checked_type) for param in main.params] == ["Tensor[(3, 4), float32]"]
    assert main.body.checked_type == main.params[0].checked_type


def test_a_layer_may_take_several_steps() -> None:
    assert found(layers(6, widths=(8, 16))) == [(3, 10)]
    assert found(layers(7, widths=(8, 16, 16))) == [(2, 15)]


def test_what_all_layers_use_is_given_to_them() -> None:
    (part,) = repeated_parts(layers(4, is_masked=True))
    assert (len(part.occurrences), part.operators) == (4, 6)
    assert len({each.arguments[1] for each in part.occurrences}) == 1


def test_what_the_program_gives_out_of_a_layer_is_a_result_of_it() -> None:
    (part,) = repeated_parts(layers(4, is_cached=True))
    assert [len(each.outputs) for each in part.occurrences] == [2] * 4
    assert isinstance(part.module["main"].body, Tuple)


def test_other_shapes_or_scalars_are_other_parts() -> None:
    assert found(layers(2, widths=(8, 16))) == []
    x = Var("x", checked_type=TensorType((3, 4), weight(0, 1).checked_type.dtype))  # type: ignore[union-attr]
    value: Expr = x
    for number in (1, 1, 2, 2, 2):
        scaled, _ = layer(value, 0)
        value = call("Mul", scaled, Constant(np.array(number, np.float32)))
    assert found(InferType()(IRModule.from_expr(Function((x,), value)))) == [(3, 6), (2, 6)]


def test_small_parts_are_put_together() -> None:
    x = Var("x", checked_type=layers(2)["main"].params[0].checked_type)
    value: Expr = x
    for _ in range(7):
        value = call("Sin", value)
    mod = InferType()(IRModule.from_expr(Function((x,), value)))
    assert found(mod) == [(3, 2)]
    assert [len(each.occurrences) for each in repeated_parts(mod, least_operators=1)] == [7]
    assert [len(each.occurrences) for each in repeated_parts(mod, least_operators=4)] == []


def test_what_is_no_dataflow_has_no_parts() -> None:
    bound = ToANormalForm()(layers(3))
    assert isinstance(bound["main"].body, Let)
    assert repeated_parts(bound) == ()
    x = Var("x", checked_type=layers(2)["main"].params[0].checked_type)
    assert repeated_parts(IRModule.from_expr(Function((x,), x))) == ()


def test_a_program_without_types() -> None:
    bare = Var("x", checked_type=layers(2)["main"].params[0].checked_type)
    first, _ = layer(bare, 0)
    second, _ = layer(first, 10)
    assert found(IRModule.from_expr(Function((bare,), second))) == [(2, 5)]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("bert_tiny", [(2, 31)]),
        ("gpt2_tiny", [(2, 28)]),
        ("mobilenet_v2", [(3, 9), (2, 9), (2, 9), (2, 9)]),
        ("shufflenet", [(7, 12), (3, 12), (3, 12)]),
    ],
)
def test_models_of_the_zoo(name: str, parts: list[tuple[int, int]]) -> None:
    assert found(from_onnx(build_model(name))) == parts


def test_the_twelve_layers_of_a_transformer() -> None:
    size = TextSize(layers=12, width=32, heads=2, sequence=8, vocabulary=50, positions=16)
    assert found(from_onnx(build(size, seed=0))) == [(12, 31)]


@pytest.mark.slow
def test_ten_thousand_operators_are_looked_at_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    mod, looked_at = layers(2000), 0
    plain = RepeatedBlock.between

    def counted(*args: object) -> RepeatedBlock:
        nonlocal looked_at
        block = plain(*args)  # type: ignore[arg-type]
        looked_at += len(block.members)
        return block

    monkeypatch.setattr(RepeatedBlock, "between", counted)
    (part,) = repeated_parts(mod)
    operators = len(part.occurrences) * part.operators
    assert operators >= 10_000
    assert looked_at <= operators * log2(operators)
