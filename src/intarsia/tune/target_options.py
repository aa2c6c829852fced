"""Options of the targets that parts of a program are compiled for, and how they are set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from intarsia.build.kernel_table import SYMBOL, is_marked, marked_target
from intarsia.ir import Expr, Function, IRModule, post_order, substitute, with_fields, with_module_fields
from intarsia.passes import PartitionWhole
from intarsia.support.errors import UsageError
from intarsia.target import OptionValue, Target
from intarsia.tune.heuristic_pass import APPLIED, HeuristicPass
from intarsia.tune.instruction import Instruction
from intarsia.tune.transformations import transformation


@dataclass(frozen=True, slots=True)
class MarkedFunction:
    """A function that a program gives to a toolchain.

    Attributes:
        name: Of the global function; of a literal its `global_symbol`, or "".
        function: The function.
        target: What it is compiled for.
    """

    name: str
    function: Function
    target: Target


def marked_functions(mod: IRModule) -> Iterator[MarkedFunction]:
    """The functions that a program gives to toolchains, global ones and literals, in the program's order."""
    for var, root in mod.graph_functions.items():
        for expr in post_order(root):
            if isinstance(expr, Function) and is_marked(expr):
                name = var.name if expr is root else str(expr.attrs.get(SYMBOL, ""))
                yield MarkedFunction(name, expr, marked_target(expr))


def given_functions(mod: IRModule, target: str) -> tuple[list[Instruction], tuple[MarkedFunction, ...]]:
    """The functions that a program gives to toolchains, or will have given to one, and the decision to do so.

    Args:
        mod: The program.
        target: Who gets the whole of it, if it gives nothing to anybody.

    Returns:
        The decision, if there is one to be made, and the functions after it.

    Raises:
        UsageError: The program gives nothing to anybody, and neither does the target.
    """
    found = tuple(marked_functions(mod))
    if found:
        return [], found
    if not target:
        raise UsageError(
            "the program gives no function to a toolchain, and nobody is named that gets the whole",
            help='give a target, such as target="cpu -toolchain=openvino"',
        )
    whole = HeuristicPass(PartitionWhole(target)).applied
    return [whole], tuple(marked_functions(whole.apply(mod, APPLIED)))


@transformation
def set_target_options(
    mod: IRModule,
    toolchain: str,
    options: Mapping[str, OptionValue | None],
    functions: Sequence[str] = (),
) -> IRModule:
    """Set options on the targets of the functions that a program gives to a toolchain.

    Args:
        mod: The program; where it gives nothing to the toolchain, it stays as it is.
        toolchain: Name of the toolchain.
        options: Values by name of the option; None unsets it.
        functions: Names of the functions; empty: all of the toolchain.

    Raises:
        UsageError: An option is unknown or belongs to another toolchain, or a value is none of it.

    Before:
        def @f(%x: Tensor[(2,), float32]) attributes {
          Compiler="native", target="cpu -toolchain=native"
        } { Relu(%x) }
    After: (toolchain="native", options={"threads": 1})
        def @f(%x: Tensor[(2,), float32]) attributes {
          Compiler="native", target="cpu -toolchain=native -threads=1"
        } { Relu(%x) }
    """
    replacements: dict[Expr, Expr] = {}
    for each in marked_functions(mod):
        is_meant = each.target.toolchain == toolchain and (not functions or each.name in functions)
        target = each.target.with_options(**options) if is_meant else each.target
        if target != each.target:
            attrs = each.function.attrs.updated(target=str(target))
            replacements[each.function] = with_fields(each.function, attrs=attrs)
    return with_marked_functions(mod, replacements)


def with_marked_functions(mod: IRModule, replacements: Mapping[Expr, Expr]) -> IRModule:
    """A program with others in the place of functions that it gives to toolchains."""
    if not replacements:
        return mod
    functions = {
        var: substitute(function, dict(replacements)) if isinstance(function, Function) else function
        for var, function in mod.functions.items()
    }
    return with_module_fields(mod, functions=functions)  # type: ignore[arg-type]  # functions for functions
