"""Whether this process is a worker of a test: there modules of tests register what the suite must not see."""

from __future__ import annotations

import sys


def is_worker() -> bool:
    """Workers do not import pytest, and every process of the suite does."""
    return "pytest" not in sys.modules
