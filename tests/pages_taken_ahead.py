"""A thread of a test's own that takes pages in the background, whatever memory the machine has."""

from __future__ import annotations

import pytest

from intarsia.support import growing_memory, pages_ahead
from intarsia.support.page_memory import allocate_pages, populate_pages
from intarsia.support.pages_ahead import PagesAhead

MIB = 1 << 20
FREE = 8 << 30

takes_pages = pytest.mark.skipif(
    not populate_pages(allocate_pages(MIB)), reason="the system takes no pages without a write"
)


def pages_of_test(monkeypatch: pytest.MonkeyPatch, *, free: int = FREE, most: int = 64 * MIB) -> PagesAhead:
    """Return the thread for all memory that grows from now on.

    Args:
        monkeypatch: Fixture of the test.
        free: Bytes that are free on the machine.
        most: Bytes that are taken ahead at most.
    """
    thread = PagesAhead(most)
    monkeypatch.setattr(growing_memory, "PAGES_AHEAD", thread)
    monkeypatch.setattr(pages_ahead, "free_memory", lambda: free)
    return thread
