"""Native kernels that attend to the tokens of other texts: steps and length have any size, each its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cross_attention import HEADS, MASKS, decoder_inputs, decoder_model
from tests.effort import examples

from intarsia import build, from_onnx, load
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.errors import ExecutionError
from intarsia.target import Target
from intarsia.toolchain.native.batches.item_kernel import ItemKernel

SIZES = ((1, 1, 1), (1, 7, 13), (3, 2, 1), (2, 29, 5), (5, 1, 53), (1, 60, 60), (1, 1, 1))
"""Texts, steps of each, and tokens of the text that they attend to."""


def native(model: object, threads: int = 1) -> Executable:
    return build(partition_whole(from_onnx(model), Target(f"cpu -toolchain=native -threads={threads}")))


def require_right(
    executable: Executable, reference: Executable, sizes: tuple[int, int, int], seed: int
) -> None:
    inputs = decoder_inputs(*sizes, seed)
    (result,), (right,) = executable.run_flat(**inputs), reference.run_flat(**inputs)
    assert isinstance(result, np.ndarray)
    assert isinstance(right, np.ndarray)
    assert result.shape == right.shape
    np.testing.assert_allclose(result, right, rtol=1e-3, atol=1e-4 * max(1.0, np.abs(right).max()))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("mask", MASKS)
def test_every_pair_of_lengths_is_right(mask: str, threads: int) -> None:
    model = decoder_model(mask)
    reference = build(from_onnx(model))
    with native(model, threads) as executable:
        (kernel,) = executable.kernels
        assert isinstance(kernel, ItemKernel)
        for seed, sizes in enumerate(SIZES):
            require_right(executable, reference, sizes, seed)


def test_one_text_of_any_lengths_and_an_artifact(tmp_path: Path) -> None:
    model = decoder_model("added", texts="1")
    reference = build(from_onnx(model))
    with native(model) as executable:
        executable.save(tmp_path / "decoder.intarsia")
    with load(tmp_path / "decoder.intarsia") as loaded:
        for steps, length in ((1, 1), (7, 31), (31, 7)):
            require_right(loaded, reference, (1, steps, length), steps)


def test_a_call_without_a_token_to_attend_to_is_an_error() -> None:
    with native(decoder_model()) as executable:
        inputs = decoder_inputs(2, 3, 1)
        inputs["e"], inputs["m"] = inputs["e"][:, :0], inputs["m"][:, :0]
        with pytest.raises(ExecutionError, match="native runs 1 items or more here, found 0"):
            executable.run_flat(**inputs)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(MASKS)),
    st.sampled_from(HEADS),
    st.booleans(),
    st.integers(0, 99),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 40), st.integers(1, 70)), min_size=4, max_size=4),
    st.integers(1, 2),
)
def test_any_lengths_give_what_the_reference_gives(
    mask: str, heads: int, is_causal: bool, seed: int, sizes: list[tuple[int, int, int]], threads: int
) -> None:
    model = decoder_model(mask, heads, seed, is_causal=is_causal)
    reference = build(from_onnx(model))
    with native(model, threads) as executable:
        for item in sizes:
            require_right(executable, reference, item, seed)
