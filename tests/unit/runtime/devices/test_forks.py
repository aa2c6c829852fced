"""A child that is forked while threads of its parent call a program on devices can call it too."""

from __future__ import annotations

import numpy as np
import pytest
from tests.device_plans import branch_kernels, two_branches
from tests.forked_children import forked, threads_that_call
from tests.unit.runtime.devices.test_runner import PAIRS, X

from intarsia.runtime.executable import Executable

CHILDREN = 6


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_forked_children_call_programs_on_devices_while_threads_call(names: tuple[str, str]) -> None:
    with Executable(two_branches(names), branch_kernels()) as executable:
        with threads_that_call(lambda: executable(X)):
            statuses = [
                forked(lambda: all(np.array_equal(executable(X), 3 * X + 1) for _ in range(3)))
                for _ in range(CHILDREN)
            ]
        assert statuses == [0] * CHILDREN
        np.testing.assert_array_equal(executable(X), 3 * X + 1)
