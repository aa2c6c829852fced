"""A constant that is stored stays what it is, whatever lives and dies beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from intarsia.measure.arrays.constant_store import ConstantStore, stored_constant


def test_an_array_is_written_once(tmp_path: Path) -> None:
    store = ConstantStore(tmp_path)
    array = np.arange(6.0)
    assert store.put(array) == store.put(array)


def test_constants_of_programs_that_come_and_go_keep_their_values(tmp_path: Path) -> None:
    """CPython gives the identity of a dead array to the next one; its place must still be a new one."""
    store = ConstantStore(tmp_path)
    places = [store.put(np.full(4, number)) for number in range(20)]
    assert [int(stored_constant(place)[0]) for place in places] == list(range(20))
