"""What tests of measuring share: a measurer with workers, whose builds go wrong where they are asked to."""

from collections.abc import Iterator

import pytest
from tests.faulty_builds import build_with_fault

from intarsia.autoschedule.measuring import PoolMeasurer
from intarsia.measure.testbed import TestbedLimits
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.native.machine.isa import Isa

QUICK = TimingPolicy(warmup_seconds=0.0, warmup_calls=1, min_repeat_seconds=1e-4, max_seconds=0.1)


@pytest.fixture(scope="session")
def measurer() -> Iterator[PoolMeasurer]:
    """Two workers that build, one that runs."""
    limits = TestbedLimits(build_seconds=20.0, run_seconds=20.0, turn=QUICK, most_stores=4096)
    with PoolMeasurer.open(Isa.host(), limits, workers=2, build=build_with_fault) as opened:
        yield opened
