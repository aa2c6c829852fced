"""Smoothed activations: the same bits, factors where they are absorbed, and less error in integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.parallel_programs import image
from tests.pass_checks import assert_facts_kept, checked, operator_counts
from tests.quantised_programs import program, weights

from intarsia.ir import Constant, Expr, IRModule, TensorType
from intarsia.op import call
from intarsia.passes import AnnotateQuantization
from intarsia.support.errors import UsageError
from intarsia.tune.quantise.calibrate_quantization import calibrate
from intarsia.tune.quantise.output_error import relative_error
from intarsia.tune.quantise.program_runner import running_program
from intarsia.tune.quantise.quantised import in_integers, quantised
from intarsia.tune.quantise.rewrites import Rewrites, possible_rewrites
from intarsia.tune.quantise.smooth_activations import (
    SmoothActivations,
    read_exponents,
    smoothing_exponents,
    smoothing_record,
)

REFERENCE = ("reference",)
WIDTH = 16


def outliers(size: int = WIDTH, factor: float = 40.0) -> Constant:
    """A scale with two channels of outliers."""
    scale = np.random.default_rng(size).uniform(0.5, 1.5, size)
    scale[[1, size // 2]] *= factor
    return Constant(scale.astype(np.float32))


def normalised(x: Expr, name: str = "LayerNormalization") -> Expr:
    rest = (weights(WIDTH, seed=7),) if name == "LayerNormalization" else ()
    return call(name, x, outliers(), *rest, axis=-1)


def attention_inputs(*, post: bool, name: str = "LayerNormalization") -> IRModule:
    """Two projections of a normalised value, which a residual connection reads as well if `post`."""
    hidden = normalised(image(2, 6, WIDTH), name)
    products = [call("MatMul", hidden, weights(WIDTH, WIDTH, seed=seed)) for seed in (1, 2)]
    joined = call("Add", products[0], hidden) if post else products[0]
    return program(joined, products[1])


def smoothed(before: IRModule, **options: Any) -> IRModule:
    after = checked(SmoothActivations(**options), before, rtol=0.0, atol=0.0)
    assert after is not before
    return after


def sets(mod: IRModule, count: int = 3) -> list[dict[str, Any]]:
    (x,) = mod["main"].params
    assert isinstance(x.checked_type, TensorType)
    rng, shape = np.random.default_rng(3), x.checked_type.static_shape
    return [{x.name: rng.standard_normal(shape).astype(np.float32)} for _ in range(count)]


def error_in_integers(mod: IRModule, plain: IRModule) -> float:
    inputs = sets(plain)
    record = calibrate(AnnotateQuantization()(mod), inputs)
    with (
        running_program(in_integers(mod, record), REFERENCE) as run,
        running_program(plain, REFERENCE) as exact,
    ):
        return relative_error(exact(inputs[0]), run(inputs[0]))


@pytest.mark.parametrize("name", ["LayerNormalization", "RMSNormalization"])
def test_a_normalisation_takes_the_factors(name: str) -> None:
    before = attention_inputs(post=False, name=name)
    after = smoothed(before)
    assert operator_counts(after) == operator_counts(before)
    assert error_in_integers(after, before) < 0.5 * error_in_integers(before, before)


def test_a_normalisation_with_other_readers_keeps_its_result() -> None:
    """As in BERT: one multiplication in front of both projections."""
    before = attention_inputs(post=True)
    after = smoothed(before)
    assert operator_counts(after) - operator_counts(before) == {"Mul": 1}
    assert error_in_integers(after, before) < 0.5 * error_in_integers(before, before)
    assert SmoothActivations(inserts=False)(before) is before


def test_even_channels_get_no_multiplication() -> None:
    hidden = call("Tanh", image(2, 6, WIDTH))
    before = program(call("MatMul", hidden, weights(WIDTH, 4)), hidden)
    assert SmoothActivations()(before) is before


def test_all_of_the_range_moves_to_the_weights() -> None:
    before = attention_inputs(post=False)
    exponents = smoothing_exponents(before, sets(before), 1.0)
    (powers,) = exponents.values()
    assert np.ptp(powers) >= 5, "40 times the range of the others"
    after = SmoothActivations(record=smoothing_record(exponents))(before)
    assert not smoothing_exponents(after, sets(before), 1.0)


def test_a_record_is_read_and_checked() -> None:
    before = attention_inputs(post=False)
    exponents = smoothing_exponents(before, sets(before))
    record = smoothing_record(exponents)
    assert read_exponents(record) == exponents
    with pytest.raises(UsageError, match="has 2 channels of layer 0, the program 16"):
        SmoothActivations(record='{"0":[1,2]}')(before)
    with pytest.raises(UsageError, match="has 1 channels of layer 9, the program no such layer"):
        SmoothActivations(record='{"9":[1]}')(before)


@pytest.mark.parametrize("record", ["", "[]", '{"x":[1]}', '{"0":3}', '{"0":["a"]}'])
def test_a_malformed_record(record: str) -> None:
    with pytest.raises(UsageError, match=r"^a record of smoothed activations is malformed"):
        read_exponents(record)


def test_limits() -> None:
    with pytest.raises(UsageError, match=r"^alpha is 1.5, expected a number from 0 to 1$"):
        SmoothActivations(alpha=1.5)
    with pytest.raises(UsageError, match="has the exponent 13, expected at most 12"):
        SmoothActivations(record='{"0":[-13]}')


def test_facts_are_kept_and_annotated_programs_stay() -> None:
    for post in (False, True):
        assert_facts_kept(SmoothActivations(), attention_inputs(post=post))
    annotated = AnnotateQuantization()(attention_inputs(post=True))
    assert SmoothActivations()(annotated) is annotated


def test_inputs_of_a_file(tmp_path: Path) -> None:
    before = attention_inputs(post=False)
    arrays = np.stack([item["x"] for item in sets(before)])
    np.savez(tmp_path / "x.npz", x=arrays)
    by_file = SmoothActivations(str(tmp_path / "x.npz"))(before)
    by_record = SmoothActivations(record=smoothing_record(smoothing_exponents(before, sets(before))))(before)
    assert str(by_file) == str(by_record)


@st.composite
def networks(draw: st.DrawFn) -> IRModule:
    """Normalisations, products and sums in a row, some with residuals, reshapes or activations."""
    value: Expr = image(2, 3, WIDTH)
    for number in range(draw(st.integers(1, 3))):
        before = value
        kind = draw(st.sampled_from(["LayerNormalization", "RMSNormalization", "Mul", "none"]))
        if kind == "Mul":
            value = call("Mul", value, outliers())
        elif kind != "none":
            value = normalised(value, kind)
        if draw(st.booleans()):
            value = call("Reshape", value, Constant(np.array([6, WIDTH], np.int64)))
        value = call("MatMul", value, weights(WIDTH, WIDTH, seed=number))
        if draw(st.booleans()):
            value = call("Add", value, weights(WIDTH, seed=10 + number))
        if draw(st.booleans()):
            value = call(draw(st.sampled_from(["Relu", "Gelu", "Softmax"])), value)
        if value.checked_type == before.checked_type and draw(st.booleans()):
            value = call("Add", value, before)
        if value.checked_type != before.checked_type:
            value = call("Reshape", value, Constant(np.array([2, 3, WIDTH], np.int64)))
    return program(value)


@settings(max_examples=examples(40), deadline=None)
@given(networks(), st.sampled_from([0.5, 0.8]))
def test_random_networks_compute_the_same_bits(mod: IRModule, alpha: float) -> None:
    checked(SmoothActivations(alpha=alpha), mod, rtol=0.0, atol=0.0)


def test_rewrites_are_part_of_the_transformation() -> None:
    before = attention_inputs(post=True)
    (rewrites,) = possible_rewrites(before, sets(before))
    assert rewrites.description == "activations smoothed"
    inputs = sets(before)
    record = calibrate(AnnotateQuantization()(rewrites.apply(before)), inputs).text
    after = quantised(before, record, [], "minmax", 0.1, **rewrites.arguments)
    with running_program(after, REFERENCE) as run, running_program(before, REFERENCE) as plain:
        assert relative_error(plain(inputs[0]), run(inputs[0])) < 0.5 * error_in_integers(before, before)
    assert Rewrites().arguments == {}
    assert Rewrites(equalizes=True).description == "layers equalised"
