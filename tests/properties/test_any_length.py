"""Random programs on texts: native with one kernel for any length gives what the reference gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.token_programs import (
    COUNTED,
    FORMS,
    HEADS,
    LENGTHS,
    NEIGHBOURS,
    OPERATORS,
    POOLED,
    TOKEN_WISE,
    token_inputs,
    token_model,
)

from intarsia import build, from_onnx
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.toolchain.native.batches.item_kernel import ItemKernel

SIZES = st.tuples(st.sampled_from((1, 2, 3, 7)), st.sampled_from(LENGTHS))
"""Number of texts, and of tokens of each."""
STEPS = st.lists(
    st.sampled_from([*TOKEN_WISE, *POOLED, *NEIGHBOURS, *COUNTED, *FORMS, *OPERATORS]), min_size=1, max_size=5
)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    STEPS,
    st.sampled_from(sorted(HEADS)),
    st.booleans(),
    st.integers(0, 99),
    st.lists(SIZES, min_size=5, max_size=5),
    st.integers(1, 2),
)
def test_any_length_gives_what_the_reference_gives(
    steps: list[str],
    head: str,
    has_texts: bool,
    seed: int,
    sizes: list[tuple[int, int]],
    threads: int,
) -> None:
    mod = from_onnx(token_model(steps, seed, head, "batch" if has_texts else "1"))
    reference = build(mod)
    target = Target(f"cpu -toolchain=native -threads={threads}")
    with build(partition_whole(mod, target)) as executable:
        (kernel,) = executable.kernels
        assert isinstance(kernel, ItemKernel)
        for texts, length in sizes:
            inputs = token_inputs(mod, length, seed, texts if has_texts else 1)
            (result,), (right,) = executable.run_flat(**inputs), reference.run_flat(**inputs)
            assert isinstance(result, np.ndarray)
            assert isinstance(right, np.ndarray)
            assert np.shape(result) == np.shape(right)
            # Chains of attention without normalisation grow: errors are relative to the largest value.
            np.testing.assert_allclose(result, right, rtol=1e-3, atol=1e-3 * max(1.0, np.abs(right).max()))
