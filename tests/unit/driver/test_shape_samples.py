"""Which sizes a symbolic model is tuned for."""

from __future__ import annotations

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia import from_onnx
from intarsia.driver.shape_samples import shapes_of, sized_program
from intarsia.ir import DimRange, DType, IRModule, TensorType, dim_ranges
from intarsia.measure.sizes.dim_sizes import SizesArgument
from intarsia.support.callbacks import silent
from intarsia.support.errors import UsageError


def model() -> IRModule:
    return from_onnx(
        model_of("g (float[batch, seq, 4] x, float[?] z) => (float[batch, seq, 4] y) { y = Relu (x) }")
    )


def test_given_sizes_win_over_those_of_inputs_and_these_over_usual_ones() -> None:
    notes: list[str] = []
    given: dict[str, SizesArgument] = {"batch": (1, 4)}
    sized = sized_program(model(), given, {"x": (2, 9, 4)}, notes.append)
    assert dim_ranges(sized.module["main"]) == {"batch": DimRange(1, 4), "z[0]": DimRange(1, 8)}
    x, _ = sized.module["main"].params
    assert isinstance(x.checked_type, TensorType)
    assert x.checked_type.shape is not None
    assert x.checked_type.shape[1:] == (9, 4)
    assert sized.samples[0].sizes["batch"] == 2, "the sizes of given arrays come first"
    assert notes == [
        "the model has symbolic dimensions without sizes: tuned for z[0]=1..8; --shape gives others"
    ]


def test_fixed_sizes_leave_no_symbols() -> None:
    sized = sized_program(model(), {"batch": 2, "seq": "3..3", "z[0]": {5: 1.0}}, {}, pytest.fail)
    assert sized.samples == ()
    assert [str(param.checked_type) for param in sized.module["main"].params] == [
        "Tensor[(2, 3, 4), float32]",
        "Tensor[(5,), float32]",
    ]


def test_declared_ranges_are_kept() -> None:
    sized = sized_program(model(), {"batch": (1, 4), "seq": (1, 64), "z[0]": (1, 2)}, {}, silent)
    again = sized_program(sized.module, {}, {}, pytest.fail)
    assert again.samples == sized.samples
    assert dim_ranges(again.module["main"]) == dim_ranges(sized.module["main"])


@pytest.mark.parametrize(
    ("given", "shapes", "text"),
    [
        (
            {"bath": 2},
            {},
            "the model has no symbolic dimension 'bath'\n"
            "help: its symbolic dimensions: 'batch', 'seq', 'z[0]'",
        ),
        (
            {"batch": (1, 4)},
            {"x": (5, 2, 4)},
            "an input has batch=5, expected 1 to 4 as --shape says",
        ),
    ],
)
def test_what_is_refused(
    given: dict[str, SizesArgument], shapes: dict[str, tuple[int, ...]], text: str
) -> None:
    with pytest.raises(UsageError) as caught:
        sized_program(model(), given, shapes, silent)
    assert str(caught.value) == text


def test_two_sizes_of_one_dimension_are_refused() -> None:
    mod = from_onnx(model_of("g (float[n] x, float[n] z) => (float[n] y) { y = Add (x, z) }"))
    shapes = shapes_of({"x": np.ones(2), "z": np.ones(3)})
    with pytest.raises(UsageError, match="the inputs have n=2 and n=3"):
        sized_program(mod, {}, shapes, silent)


def test_static_models_stay_as_they_are() -> None:
    mod = from_onnx(model_of("g (float[2] x) => (float[2] y) { y = Relu (x) }"))
    sized = sized_program(mod, {}, {"x": (2,)}, pytest.fail)
    assert sized.module is mod
    assert sized.samples == ()


def test_examples_come_first_and_widen_usual_ranges() -> None:
    shapes = {"x": (11, 2, 4)}
    sized = sized_program(model(), {"seq": (1, 4)}, {}, silent, shapes)
    assert dim_ranges(sized.module["main"]) == {
        "batch": DimRange(1, 11),
        "seq": DimRange(1, 4),
        "z[0]": DimRange(1, 8),
    }
    assert sized.samples[0].sizes["batch"] == 11
    assert sized.samples[0].sizes["seq"] == 2


def decoder(total: str = "past + new", new: str = "new") -> IRModule:
    return from_onnx(
        model_of(
            f'g (float[{new}, 4] x, float[past, 4] p, float["{total}", 4] m) => (float["{total}", 4] y) '
            "{ j = Concat <axis = 0> (p, x) y = Mul (j, m) }"
        )
    )


def test_a_dimension_that_is_named_as_a_sum_has_the_sum_of_the_sizes() -> None:
    sized = sized_program(decoder(), {"new": (1, 8), "past": (0, 100)}, {}, silent)
    assert dim_ranges(sized.module["main"])["past + new"] == DimRange(1, 108)
    assert len(sized.samples) > 3
    for sample in sized.samples:
        assert sample.sizes["past + new"] == sample.sizes["past"] + sample.sizes["new"]


@pytest.mark.parametrize(("total", "has_sum"), [("total_new", True), ("total_old", False)])
def test_a_total_of_what_is_past_and_new_is_their_sum(total: str, has_sum: bool) -> None:
    """As onnxruntime-genai names them."""
    body = (
        f"(float[new, 4] x, float[past_new, 4] p, float[{total}] m) => (float[rows, 4] y, float[{total}] z)"
    )
    mod = from_onnx(model_of(f"g {body} {{ y = Concat <axis = 0> (p, x) z = Neg (m) }}"))
    sized = sized_program(mod, {"new": (1, 8), "past_new": (0, 100)}, {}, silent)
    assert (dim_ranges(sized.module["main"])[total] == DimRange(1, 108)) is has_sum
    sums = [item.sizes["past_new"] + item.sizes["new"] for item in sized.samples]
    assert ([item.sizes[total] for item in sized.samples] == sums) is has_sum


def test_of_a_sum_one_summand_may_be_fixed_or_a_number() -> None:
    fixed = sized_program(decoder(), {"new": 3, "past": (0, 100)}, {}, silent)
    assert {sample.sizes["past + new"] - sample.sizes["past"] for sample in fixed.samples} == {3}
    number = sized_program(decoder("past + 1", "1"), {"past": (0, 100)}, {}, silent)
    assert {sample.sizes["past + 1"] - sample.sizes["past"] for sample in number.samples} == {1}


def test_a_sum_of_fixed_sizes_is_fixed() -> None:
    sized = sized_program(decoder(), {"new": 3, "past": 5}, {}, silent)
    assert not sized.samples
    assert sized.module["main"].params[2].checked_type == TensorType((8, 4), DType.FLOAT32)


def test_a_past_may_be_empty_and_sums_are_not_named_as_assumed() -> None:
    notes: list[str] = []
    sized = sized_program(decoder(), {}, {}, notes.append)
    assert min(sample.sizes["past"] for sample in sized.samples) == 0
    assert notes == [
        "the model has symbolic dimensions without sizes: tuned for new=1..8, past=0..256; "
        "--shape gives others"
    ]


def test_a_size_that_is_given_for_a_sum_is_kept() -> None:
    sized = sized_program(decoder(), {"new": (1, 2), "past": (1, 2), "past + new": (2, 4)}, {}, silent)
    assert dim_ranges(sized.module["main"])["past + new"] == DimRange(2, 4)
