"""The digest of a constant's type and values."""

from __future__ import annotations

import numpy as np

from intarsia.ir.dtype import DType
from intarsia.ir.expr import Constant
from intarsia.support.digest import digest_bytes


def constant_digest(constant: Constant) -> bytes:
    """Digest of a constant's type and values, computed once per Constant."""
    if not constant._digest:  # the cache belongs to this module, the slot to the class
        data = constant.data
        dtype = DType.of(data)
        if dtype is DType.STRING:
            content: bytes | memoryview = repr(data.tolist()).encode()
        else:
            content = np.ascontiguousarray(data).reshape(-1).view(np.uint8).data
        header = f"{dtype.value}{data.shape}".encode()
        constant._digest.append(digest_bytes(header, content))  # as above
    return constant._digest[0]  # as above
