"""Work that makes millions of objects and no cycles of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Let no cycles be looked for meanwhile: programs and loops are trees, and go when nobody refers to them.

    Looking for cycles among them takes a quarter of the time of making them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
