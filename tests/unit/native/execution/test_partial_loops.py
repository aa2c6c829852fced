"""Parts of parallel loops: the first iterations only, on all threads."""

from __future__ import annotations

import numpy as np
import pytest
from tests.native_ir import kernel

from intarsia.native.execution.call_table import CallTable, KernelCall
from intarsia.native.execution.partial_loops import PartialLoops
from intarsia.native.execution.thread_pool import ThreadPool


@pytest.mark.parametrize(
    ("threads", "extent", "parts", "part"),
    [(1, 64, 4, 16), (2, 64, 4, 16), (3, 7, 4, 3), (2, 9, 2, 5), (2, 0, 4, 0), (2, 64, 1, 64)],
)
def test_the_first_iterations_run_once(threads: int, extent: int, parts: int, part: int) -> None:
    counts = np.zeros(1000, np.int32)
    table = CallTable((KernelCall(kernel("regions"), (counts, np.array([extent, 3]))),))
    with ThreadPool(threads) as pool:
        partial = PartialLoops(pool, parts)
        table.run(partial)
        np.testing.assert_array_equal(counts, np.where(np.arange(1000) < part, 3, 0))
        assert partial.ratio == (extent / part if part else np.inf)
        table.run(pool)
    assert (counts[:extent] >= 3).all()
