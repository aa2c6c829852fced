"""Samples of several dimensions together."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.measure.sizes import DimSizes, choose_samples
from intarsia.measure.sizes.choose_samples import MOST_CHECKED, MOST_TIMED


def sizes(**texts: str) -> dict[str, DimSizes]:
    return {name: DimSizes.read(name, text) for name, text in texts.items()}


def test_no_dimensions_have_no_samples() -> None:
    assert choose_samples({}) == ()


def test_ranges_grow_together_and_the_middle_comes_first() -> None:
    samples = choose_samples(sizes(batch="1..8", seq="1..512@log"))
    timed = [sample.label for sample in samples if sample.weight]
    assert timed == ["batch=4, seq=23", "batch=1, seq=1", "batch=8, seq=512"]
    assert [sample.weight for sample in samples[:3]] == pytest.approx([1 / 3] * 3)


def test_borders_are_checked_one_dimension_at_a_time() -> None:
    checked = [dict(sample.sizes) for sample in choose_samples(sizes(batch="1..8", seq="1..512@log"))[3:]]
    assert len(checked) == MOST_CHECKED
    for sample in checked:
        assert (sample["batch"] == 4) != (sample["seq"] == 23)
    assert {"batch": 1, "seq": 23} in checked
    assert {"batch": 4, "seq": 512} in checked


def test_shares_multiply() -> None:
    samples = choose_samples(sizes(batch="1:0.9,8:0.1", seq="16:0.5,128:0.5"))
    weights = {sample.label: sample.weight for sample in samples if sample.weight}
    assert weights == pytest.approx(
        {
            "batch=1, seq=16": 0.45,
            "batch=1, seq=128": 0.45,
            "batch=8, seq=16": 0.05,
            "batch=8, seq=128": 0.05,
        }
    )


DIMS = st.dictionaries(
    st.sampled_from("abc"),
    st.one_of(
        st.tuples(st.integers(0, 40), st.integers(0, 600)).map(lambda pair: (pair[0], sum(pair))),
        st.dictionaries(st.integers(1, 512), st.floats(0.01, 1.0), min_size=1, max_size=6),
    ),
    min_size=1,
)


@given(DIMS)
def test_samples_are_few_distinct_and_in_their_ranges(given_sizes: dict[str, object]) -> None:
    dims = {name: DimSizes.read(name, value) for name, value in given_sizes.items()}  # type: ignore[arg-type]
    samples = choose_samples(dims)
    timed = [sample for sample in samples if sample.weight]
    assert samples[0].weight > 0
    assert 1 <= len(timed) <= MOST_TIMED
    assert len(samples) <= MOST_TIMED + MOST_CHECKED
    assert math.isclose(sum(sample.weight for sample in timed), 1.0)
    for sample in samples:
        assert sample.sizes.keys() == dims.keys()
        assert all(size in dims[name].range for name, size in sample.sizes.items())
