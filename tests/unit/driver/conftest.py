"""What all tests of whole jobs share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _one_fork_server(one_fork_server: None) -> None:
    """Runs of `tune` have one fork server."""
