"""What is done to a function before it is compiled: the engines do the like on their own."""

from __future__ import annotations

from intarsia.ir import Function, GlobalVar, IRModule, post_order, with_fields
from intarsia.passes import default_heuristic
from intarsia.transform import PassContext

_MARKS = ("Compiler", "target", "global_symbol")


def simplified(function: Function, module: IRModule | None) -> Function:
    """The function with constants folded, batch normalization in the weights, and fewer operators.

    This belongs before the source is made: what is folded there is a weight of the source.

    Args:
        function: Marked for a toolchain or not; it keeps its parameters and attributes.
        module: Where the global functions are that it calls.
    """
    open_function = with_fields(function, attrs=function.attrs.updated(**dict.fromkeys(_MARKS)))
    main = GlobalVar("main", checked_type=function.checked_type)
    callees = {} if module is None or not _calls_functions(function) else module.functions
    functions = {var: callee for var, callee in callees.items() if var.name != main.name}
    passed = default_heuristic()(IRModule({**functions, main: open_function}), PassContext())["main"]
    return with_fields(passed, attrs=function.attrs)


def _calls_functions(function: Function) -> bool:
    return any(isinstance(expr, GlobalVar) for expr in post_order(function))
