"""Simplifications of a function before it is compiled, equivalent to those of the engines."""

from __future__ import annotations

from typing import Final

from intarsia.ir import Function, GlobalVar, IRModule
from intarsia.passes import DecomposeMl, DecomposeRecurrent, default_heuristic
from intarsia.transform import PassContext

_NEEDED: Final = ("DecomposeMl", "DecomposeRecurrent")
"""Passes whose operators have no kernels: no level, disabled pass or instrument keeps them from running."""


def simplified(function: Function, context: PassContext | None = None) -> Function:
    """The function with constants folded, batch normalization in the weights, and fewer operators.

    Recurrent layers become the operators of their steps, and operators of ai.onnx.ml those of ONNX, for which
    there are kernels.

    This is done behind the source, not before it is made: its weights are then the program's, and an artifact
    holds what is folded only in the form that kernels read.

    Args:
        function: Calls no global function; it keeps its parameters and attributes.
        context: Context of the passes; default: that of this thread.
    """
    main = GlobalVar("main", checked_type=function.checked_type)
    context = PassContext.current().inner() if context is None else context
    needed = context.inner(_NEEDED)
    module = DecomposeMl()(DecomposeRecurrent()(IRModule({main: function}), needed), needed)
    return default_heuristic()(module, context)["main"]
