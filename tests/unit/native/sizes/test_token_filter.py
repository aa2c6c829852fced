"""The loop function of a weighted sum of neighbouring tokens."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import compile_kernel, x86_sets
from tests.unit.native.sizes.test_text_loops import SIZES, run

from intarsia.ir import DType, GlobalVar, IRModule
from intarsia.ir.verify import verify
from intarsia.native.sizes import TokenFilter, filter_function
from intarsia.native.tir import default_tir
from intarsia.op.token_filter_op import token_filter_value


@settings(max_examples=examples(40, 12), deadline=None)
@given(
    st.integers(-9, 9),
    st.integers(1, 9),
    st.integers(1, 3),
    st.integers(1, 150),
    st.sampled_from([DType.FLOAT32, DType.FLOAT64]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(sorted(x86_sets())),
)
def test_neighbours_are_summed(
    first: int,
    count: int,
    step: int,
    channels: int,
    dtype: DType,
    are_taps_first: bool,
    is_parallel: bool,
    isa: str,
) -> None:
    params = ("w", "x") if are_taps_first else ("x", "w")
    form = TokenFilter("x", "w", params, "y", count, channels, dtype, first, step)
    module = IRModule({GlobalVar("f"): filter_function(form, x86_sets()[isa], is_parallel=is_parallel)})
    verify(module)
    passes = default_tir(x86_sets()[isa].vector_bytes, x86_sets()[isa].vector_registers)
    kernel = compile_kernel(passes(module).prim_func("f"), x86_sets()[isa])
    for texts, tokens in SIZES:
        rng = np.random.default_rng((texts, tokens))
        x = rng.standard_normal((texts, tokens, channels)).astype(dtype.numpy)
        taps = rng.standard_normal((count, channels)).astype(dtype.numpy)
        result = np.full(x.shape, np.nan, dtype.numpy)
        run(kernel, [taps, x] if are_taps_first else [x, taps], result, texts, tokens)
        np.testing.assert_allclose(result, token_filter_value(x, taps, first, step), rtol=1e-4, atol=1e-5)
