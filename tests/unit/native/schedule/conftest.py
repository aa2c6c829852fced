"""What the tests of schedules share."""

from __future__ import annotations

import pytest


@pytest.fixture(params=[2, pytest.param(1, marks=pytest.mark.slow)], ids=["2 threads", "1 thread"])
def threads(request: pytest.FixtureRequest) -> int:
    """Return for how many threads a kernel is compiled: two run all that one does, and share the loops."""
    threads: int = request.param
    return threads
