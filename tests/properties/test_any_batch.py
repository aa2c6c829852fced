"""Random programs on a batch: native with code for any batch computes what the reference computes."""

from __future__ import annotations

from typing import Final

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.properties.random_batches import obstacle, programs

from intarsia import build
from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.passes import bind_sizes, partition_whole
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.toolchain.native.batches.item_kernel import ItemKernel

SIZES: Final = (1, 7, 8, 13, 2)
"""Both sides of a tile of 8 rows, and a small size behind a large one."""


@settings(max_examples=examples(1000, 12))
@given(programs(), st.integers(0, 100), st.sampled_from([1, 2]))
def test_any_batch_gives_what_the_reference_gives(mod: IRModule, seed: int, threads: int) -> None:
    if obstacle(mod) is not None:
        event("mixed")
        return
    target = Target(f"cpu -toolchain=native -threads={threads} -batches=any")
    try:
        executable = build(partition_whole(mod, target))
    except CompileError as error:
        event(f"refused: {error.problem[:60]}")
        return
    with executable:
        assert any(isinstance(kernel, ItemKernel) for kernel in executable.kernels)
        event("any batch")
        for size in SIZES:
            inputs = random_inputs(bind_sizes(mod, {"n": size})["main"], seed)
            pairs = zip(executable.run_flat(**inputs), build(mod).run_flat(**inputs), strict=True)
            for result, right in pairs:
                assert isinstance(result, np.ndarray)
                assert isinstance(right, np.ndarray)
                assert np.shape(result) == np.shape(right)
                np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-4, err_msg=str(mod))
