"""Whatever the search for GPUs draws and mutates can be launched, and computes what its DAG says."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.gpu_schedules import FAMILIES, check_schedule, drawn_schedules

from intarsia.autoschedule.features import feature_names, per_store_features
from intarsia.autoschedule.population.gpu import is_launchable
from intarsia.native.gpu.kernel_list import MOST_SHARED_BYTES, MOST_THREADS, list_kernels
from intarsia.native.lowering import lower

QUICK = ("chain", "depthwise convolution", "least", "pool", "reduction", "softmax", "windows")
"""Families whose schedules are interpreted in a tenth of a second."""


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(QUICK), st.integers(0, 2**32))
def test_schedules_can_be_launched_and_compute_the_same(family: str, seed: int) -> None:
    for task, state in drawn_schedules(family, seed):
        assert is_launchable(task, state)
        for kernel in list_kernels(check_schedule(task, state, is_compiled=False)).kernels:
            assert kernel.thread_loop.extent <= MOST_THREADS
            assert kernel.shared_bytes <= MOST_SHARED_BYTES
        if "tensorize" not in str(state):
            rows = per_store_features(lower(task.dag, state), task.hardware)
            assert (rows[:, feature_names().index("is_gpu")] == 1).any()
            assert (rows >= 0).all()


@pytest.mark.slow  # ten minutes: more than 500 schedules, each interpreted and compiled
@pytest.mark.parametrize("family", FAMILIES)
def test_many_schedules_compute_the_same_compiled(family: str) -> None:
    count = 0
    for seed in range(1000, 1040):
        for task, state in drawn_schedules(family, seed):
            check_schedule(task, state, seed)
            count += 1
    assert count >= 39
