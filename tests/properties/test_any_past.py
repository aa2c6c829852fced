"""Random programs with a past: native with one kernel for any sizes gives what the reference gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.past_programs import ATTENTION, LENGTHS, PASTS, STEPS, past_inputs, past_model

from intarsia import build, from_onnx
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.toolchain.native.batches.item_kernel import ItemKernel

SIZES = st.tuples(st.sampled_from((1, 2, 3)), st.sampled_from(LENGTHS), st.sampled_from(PASTS))
"""Numbers of texts, of new tokens, and of past ones."""


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(STEPS), max_size=2),
    st.lists(st.sampled_from([*ATTENTION, *STEPS]), max_size=2),
    st.sampled_from(ATTENTION),
    st.booleans(),
    st.integers(0, 99),
    st.lists(SIZES, min_size=5, max_size=5),
    st.integers(1, 2),
)
def test_any_past_gives_what_the_reference_gives(
    before: list[str],
    behind: list[str],
    attention: str,
    has_texts: bool,
    seed: int,
    sizes: list[tuple[int, int, int]],
    threads: int,
) -> None:
    mod = from_onnx(past_model([*before, attention, *behind], seed, "batch" if has_texts else "1"))
    reference = build(mod)
    target = Target(f"cpu -toolchain=native -threads={threads}")
    with build(partition_whole(mod, target)) as executable:
        (kernel,) = executable.kernels
        assert isinstance(kernel, ItemKernel)
        for texts, length, past in sizes:
            inputs = past_inputs(mod, (texts if has_texts else 1, length, past), seed)
            pairs = zip(executable.run_flat(**inputs), reference.run_flat(**inputs), strict=True)
            for result, right in pairs:
                assert isinstance(result, np.ndarray)
                assert isinstance(right, np.ndarray)
                assert result.shape == right.shape
                # Chains of attention without normalisation grow: errors are relative to the largest value.
                bound = 1e-3 * max(1.0, float(np.abs(right).max(initial=0)))
                np.testing.assert_allclose(result, right, rtol=1e-3, atol=bound)
