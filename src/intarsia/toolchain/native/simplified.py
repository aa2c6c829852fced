"""Simplifications of a function before it is compiled, equivalent to those of the engines."""

from __future__ import annotations

from intarsia.ir import Function, GlobalVar, IRModule
from intarsia.passes import DecomposeMl, DecomposeRecurrent, default_heuristic
from intarsia.transform import PassContext


def simplified(function: Function) -> Function:
    """The function with constants folded, batch normalization in the weights, and fewer operators.

    Recurrent layers become the operators of their steps, and operators of ai.onnx.ml those of ONNX, for which
    there are kernels.

    This is done behind the source, not before it is made: its weights are then the program's, and an artifact
    holds what is folded only in the form that kernels read.

    Args:
        function: Calls no global function; it keeps its parameters and attributes.
    """
    main = GlobalVar("main", checked_type=function.checked_type)
    context = PassContext()
    module = DecomposeMl()(DecomposeRecurrent()(IRModule({main: function}), context), context)
    return default_heuristic()(module, context)["main"]
