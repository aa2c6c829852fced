"""Random programs: what counts as computing items by itself gives the same for a batch and for its parts."""

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
from intarsia.passes import bind_sizes

PARTS: Final = (3, 1, 2)


@settings(max_examples=examples(1000, 60))
@given(programs(), st.integers(0, 100))
def test_a_batch_gives_what_its_parts_give(mod: IRModule, seed: int) -> None:
    reason = obstacle(mod)
    event("by themselves" if reason is None else "mixed")
    if reason is not None:
        return
    items = sum(PARTS)
    inputs = random_inputs(bind_sizes(mod, {"n": items})["main"], seed)
    together = build(mod).run_flat(**inputs)
    begin, apart = 0, []
    for size in PARTS:
        part = {name: array[begin : begin + size] for name, array in inputs.items()}
        apart.append(build(mod).run_flat(**part))
        begin += size
    for position, result in enumerate(together):
        assert isinstance(result, np.ndarray)
        joined = np.concatenate([np.asarray(part[position]) for part in apart])
        np.testing.assert_allclose(result, joined, rtol=1e-4, atol=1e-4, err_msg=str(mod))
