"""float64 that OpenVINO computes in float32, without a word.

Measured with OpenVINO 2026.4.1 on the CPU against onnxruntime, with 46 operators on numbers of the sizes 1,
1e300 and 1e-300:

* No operator computes float64. Even what only moves elements (Reshape, Transpose, Slice, Gather, Concat, Pad)
  rounds them to float32 on the way: 1e300 becomes 3.4e38 and 1e-300 becomes 0.
* Cast from and to float64 turns infinities into 3.4e38, Cast to bool makes 1e-300 false, and Cast from
  integers rounds them to 24 bits.
* Right are Identity, and what does not read the values: Shape and Size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from intarsia.ir import Call, DType, Op
from intarsia.toolchain.call_facts import call_types

_EXACT: Final = frozenset({"Identity", "Shape", "Size"})


def rounds_doubles(call: Call) -> bool:
    """Whether a call of an operator takes or gives float64, which OpenVINO would round to float32."""
    if not isinstance(call.op, Op) or (not call.op.domain and call.op.name in _EXACT):
        return False
    return DType.FLOAT64 in call_types(call)


def first_rounded(calls: Iterable[Call]) -> Call | None:
    """The first call that takes or gives float64, which OpenVINO would round; None if none does."""
    return next(filter(rounds_doubles, calls), None)
