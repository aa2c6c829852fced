"""Whatever is sampled and mutated is a program, and computes what its DAG says."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.searched_programs import MAKERS, ODD, check_program, random_programs

from intarsia.autoschedule.task import SpaceOptions

FIFTEEN = (
    *("matmul", "double_matmul", "parallel_matmul", "conv2d_nchw_bn_relu", "max_pool2d", "min_nm"),
    *("softmax_nm", "softmax_abcd", "zero_rank_compute", "conv2d_winograd_nhwc", "depthwise_conv2d"),
    *("layer_norm", "argmax_nm", "strided_conv", "resized"),
)
QUICK = sorted(MAKERS.keys() - {"conv2d_winograd_nhwc", "conv2d_nchw_bn_relu", "odd_conv", "odd_matmul"})
"""Computations of which a program is interpreted in a tenth of a second."""


@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(QUICK), st.integers(0, 2**32))
def test_random_programs_compute_the_same(name: str, seed: int) -> None:
    for state in random_programs(name, 2, seed):
        check_program(name, state)


@pytest.mark.parametrize("name", sorted(ODD.keys() - {"odd_conv", "odd_matmul"}))
def test_programs_with_rests_compute_the_same(name: str) -> None:
    for state in random_programs(name, 6, 2, SpaceOptions(imperfect_share=0.7)):
        check_program(name, state)


@pytest.mark.slow  # a minute: loops with rests are interpreted
@pytest.mark.parametrize("name", sorted(ODD))
def test_many_programs_with_rests_compute_the_same(name: str) -> None:
    for state in random_programs(name, 60, 3, SpaceOptions(imperfect_share=0.7)):
        check_program(name, state)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matmul", "softmax_nm", "conv2d_nchw_bn_relu"])
def test_random_programs_compute_the_same_compiled(name: str) -> None:
    for state in random_programs(name, 4, 1):
        check_program(name, state, compiled=True)


@pytest.mark.slow  # some minutes: 2,000 programs over 15 DAGs, each interpreted
@pytest.mark.parametrize("name", FIFTEEN)
def test_many_random_programs_compute_the_same(name: str) -> None:
    states = [state for seed in range(4) for state in random_programs(name, 34, seed)]
    assert len(states) == 136
    for state in states:
        check_program(name, state)


@pytest.mark.slow  # some minutes: an object file for each program
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_random_programs_of_every_computation_compute_the_same_compiled(name: str) -> None:
    count = 2 if name == "conv2d_winograd_nhwc" else 20  # its transforms, written out, compile for long
    for state in random_programs(name, count, 5):
        check_program(name, state, compiled=True)
