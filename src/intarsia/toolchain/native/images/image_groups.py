"""Grouped convolutions in the form that tiles of images have kernels for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from intarsia.ir import Call, Constant


def without_multiplier(call: Call) -> Call:
    """Return a convolution none of whose groups computes several channels from one.

    Groups are joined, with zeros between them, as kernels of such groups read an image in no blocks.

    Args:
        call: Call of Conv with constant weights.
    """
    weight, groups = call.args[1], call.attrs.get("group", 1)
    assert isinstance(weight, Constant)
    assert isinstance(groups, int)
    data = weight.data
    if groups == 1 or data.shape[1] > 1 or data.shape[0] == groups:
        return call
    joined = next(count for count in range(2, groups + 1) if groups % count == 0)
    wide = np.zeros((groups // joined, joined, data.shape[0] // groups, joined, *data.shape[2:]), data.dtype)
    of_groups = data.reshape(groups // joined, joined, -1, *data.shape[2:])
    for number in range(joined):
        wide[:, number, :, number] = of_groups[:, number]
    kernel = Constant(wide.reshape(data.shape[0], joined, *data.shape[2:]))
    attrs = call.attrs.updated(group=groups // joined)
    return replace(call, args=(call.args[0], kernel, *call.args[2:]), attrs=attrs)
