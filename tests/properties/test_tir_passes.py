"""Passes on loop functions: what a random function computes stays the same, bit for bit."""

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.properties.random_kernels import kernels
from tests.properties.random_loops import loop_functions
from tests.tir_checks import checked, in_module

from intarsia.ir import PrimFunc
from intarsia.native.tir import (
    LoopPartition,
    RegisterPromotion,
    ResultStorage,
    Simplify,
    SkipPadding,
    StorageRewrite,
    UnrollLoop,
    VectorizeLoop,
    default_tir,
)
from intarsia.support.errors import ExecutionError
from intarsia.transform import Pass, PassContext, Sequential

FEW = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
UNLIMITED = {"auto_max_stores": 1 << 30, "auto_max_depth": 1 << 30}
MAY_GO_ON = (LoopPartition, Sequential)
PASSES: list[Pass] = [
    Simplify(),
    LoopPartition(),
    LoopPartition(3, 40),
    UnrollLoop(),
    VectorizeLoop(),
    VectorizeLoop(4),
    RegisterPromotion(),
    RegisterPromotion(8, 6, 1),
    SkipPadding(),
    ResultStorage(64, 0, 0),
    StorageRewrite(),
    default_tir(),
]


@pytest.mark.parametrize(
    "made", PASSES, ids=lambda one: one.info.name if isinstance(one, Sequential) else repr(one)
)
@FEW
@given(kernels(), st.integers(0, 9))
def test_a_kernel_stays_the_same(made: Pass, function: PrimFunc, seed: int) -> None:
    checked(made, function, seed, is_idempotent=not isinstance(made, MAY_GO_ON))


@pytest.mark.parametrize(
    "made", PASSES, ids=lambda one: one.info.name if isinstance(one, Sequential) else repr(one)
)
@FEW
@given(loop_functions(), st.integers(0, 9))
def test_any_function_stays_the_same(made: Pass, function: PrimFunc, seed: int) -> None:
    try:
        checked(made, function, seed, is_idempotent=not isinstance(made, MAY_GO_ON))
    except ExecutionError:
        return  # it had no defined result to begin with


@FEW
@given(kernels(), st.integers(0, 9), st.integers(1, 30))
def test_small_loops_are_unrolled(function: PrimFunc, seed: int, steps: int) -> None:
    for explicit in (True, False):
        options = {"auto_max_step": steps, "explicit_unroll": explicit}
        with PassContext(config={"tir.UnrollLoop": options}):  # a second run may unroll more: see the pass
            checked(UnrollLoop(), function, seed, is_idempotent=False)
        with PassContext(config={"tir.UnrollLoop": options | UNLIMITED}):
            checked(UnrollLoop(), function, seed)


# Random kernels have no padding that is worth a guard: test_skip_padding draws some that have. Nor do their
# buffers end in results.
CHANGING = [one for one in PASSES if not isinstance(one, (Sequential, SkipPadding, ResultStorage))]


@pytest.mark.parametrize("made", CHANGING, ids=repr)
def test_some_kernels_change(made: Pass) -> None:
    """The tests above would pass if nothing did."""

    def changes(function: PrimFunc) -> bool:
        mod = in_module(function)
        return made(mod) is not mod

    unshrunk = settings(FEW, phases=[Phase.generate], max_examples=examples(200), database=None)
    assert changes(find(kernels(), changes, settings=unshrunk, random=Random(0)))
