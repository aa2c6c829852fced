"""Arguments that say what the result looks like: shapes, axes, pads, sizes.

Types can be inferred, and most toolchains can compile the call, only while these are constants, so that a
transformation must not turn them into variables.
"""

from __future__ import annotations

from types import MappingProxyType

from intarsia.ir import ABSENT, Call, Constant, Op

_REDUCTIONS = """
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    ReduceSumSquare
"""

CONSTANT_ARGUMENTS = MappingProxyType(
    {
        "AffineGrid": (1,),
        "BlackmanWindow": (0,),
        "CenterCropPad": (1,),
        "Col2Im": (1, 2),
        "ConstantOfShape": (0,),
        "CumProd": (1,),
        "CumSum": (1,),
        "DFT": (1, 2),
        "Expand": (1,),
        "HammingWindow": (0,),
        "HannWindow": (0,),
        "MaxUnpool": (2,),
        "OneHot": (1,),
        "Pad": (1, 3),
        "Range": (0, 1, 2),
        "Reshape": (1,),
        "Resize": (1, 2, 3),
        "STFT": (1, 3),
        "Slice": (1, 2, 3, 4),
        "Split": (1,),
        "SplitToSequence": (1,),
        "Squeeze": (1,),
        "Tile": (1,),
        "TopK": (1,),
        "Trilu": (1,),
        "Unsqueeze": (1,),
        **dict.fromkeys(_REDUCTIONS.split(), (1,)),
    }
)
"""Positions of such arguments by operator of ONNX's default domain."""


def has_open_shape(call: Call) -> bool:
    """Whether such an argument of an operator call is neither a constant nor absent."""
    if not isinstance(call.op, Op) or call.op.domain:
        return False
    return any(
        not isinstance(arg, Constant) and arg.checked_type != ABSENT
        for position in CONSTANT_ARGUMENTS.get(call.op.name, ())
        if position < len(call.args)
        for arg in (call.args[position],)
    )
