"""Packed weights that several regions share: variants of a program read the same ones."""

from __future__ import annotations

import threading
import weakref
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from intarsia.native.packing import Packing
from intarsia.runtime.kernel import Array
from intarsia.support.aligned_memory import aligned_array

_Key: TypeAlias = tuple[int, str, tuple[int, ...], tuple[int, ...], Packing]
_SMALLEST: Final = 1 << 16
"""Size in bytes from which packed weights are shared: a smaller copy is not worth an entry of the table."""

_lock = threading.Lock()
_packs: dict[_Key, tuple[weakref.ref[Array], weakref.ref[Array]]] = {}


def packed_weight(array: Array, packing: Packing) -> Array:
    """Return a weight packed into aligned memory, the same array as long as both it and the weight are alive.

    Args:
        array: The weight, of the shape that the packing reads; nothing writes to it any more.
        packing: Order of its elements.
    """
    if array.nbytes < _SMALLEST:
        return aligned_array(packing.pack(array))
    owner = _owner(array)
    # The address alone is not enough: once the weight is gone, another one may be there.
    order = replace(packing, tensor_name="")
    key = (array.ctypes.data, str(array.dtype), array.shape, array.strides, order)
    with _lock:
        entry = _packs.get(key)
    if entry is not None and entry[0]() is owner:
        shared = entry[1]()
        if shared is not None:
            return shared
    packed = aligned_array(packing.pack(array))
    with _lock:
        _packs[key] = weakref.ref(owner), weakref.ref(packed, lambda _: _forget(key))
    return packed


def _owner(array: Array) -> Array:
    """Return the array whose memory another one is a view of."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner


def _forget(key: _Key) -> None:
    with _lock:
        entry = _packs.get(key)
        if entry is not None and entry[1]() is None:
            del _packs[key]
