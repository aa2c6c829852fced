from __future__ import annotations

import gc
from contextlib import suppress

import pytest

from intarsia.support.garbage_collection import pause_garbage_collection


@pytest.mark.parametrize("was_enabled", [True, False])
def test_it_is_afterwards_as_it_was_before(was_enabled: bool) -> None:
    before = gc.isenabled()
    try:
        gc.enable() if was_enabled else gc.disable()
        with suppress(ValueError), pause_garbage_collection():
            assert not gc.isenabled()
            raise ValueError("work that fails")
        assert gc.isenabled() == was_enabled
    finally:
        gc.enable() if before else gc.disable()
