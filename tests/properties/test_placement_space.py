"""Genomes of random programs: each is a placement that computes the same, or is said to be invalid."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.collage_costs import BOUNDARIES, DrawnCosts, One, Two, some_specs
from tests.effort import examples
from tests.properties.random_programs import CONDITION, SHAPE, programs

from intarsia.build import build
from intarsia.collage.collage import CollageResult, collage
from intarsia.collage.evolution.placement_space import PlacementSpace
from intarsia.collage.function_search import CollageOptions
from intarsia.ir import IRModule
from intarsia.op import verify
from intarsia.runtime.kernel import TOOLCHAINS

EXAMPLES = settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
SEEDS = st.integers(0, 10**6)


@pytest.fixture(autouse=True, scope="module")
def toolchains() -> Iterator[None]:
    with TOOLCHAINS.holding("one", One), TOOLCHAINS.holding("two", Two):
        yield


def searched(mod: IRModule, seed: int) -> CollageResult:
    options = CollageOptions(covers=3, last_resort=None, shrink=False)
    return collage(mod, some_specs(), DrawnCosts(seed, invalid=0), BOUNDARIES, options)


def results(mod: IRModule) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    rng = np.random.default_rng(0)
    inputs = [
        np.array(True) if param.checked_type == CONDITION else rng.normal(size=SHAPE).astype(np.float32)
        for param in mod["main"].params
    ]
    return [np.asarray(each, np.float64) for each in build(mod).run_flat(*inputs)]


@EXAMPLES
@given(programs(compilers=(), annotated=False), SEEDS)
def test_every_genome_computes_the_same(mod: IRModule, seed: int) -> None:
    space = PlacementSpace.of(searched(mod, seed), most=4)
    if space is None:
        return
    expected, generator = results(mod), Random(seed)
    for _ in range(3):
        placement = space.decode(tuple(generator.choice(own) for own in space.choices))
        if placement is None:
            continue
        after = placement.applied(mod)
        verify(after)
        for found, wanted in zip(results(after), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@EXAMPLES
@given(programs(compilers=(), annotated=False), SEEDS)
def test_a_decoded_genome_is_encoded_as_itself(mod: IRModule, seed: int) -> None:
    space = PlacementSpace.of(searched(mod, seed), most=6)
    if space is None:
        return
    generator = Random(seed)
    genome = tuple(generator.choice(own) for own in space.choices)
    placement = space.decode(genome)
    assert placement is None or space.encode(placement) == genome
