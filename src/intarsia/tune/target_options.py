"""Options of the targets that parts of a program are compiled for, and how they are set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """A function that a program assigns to a toolchain.

    Attributes:
        name: Name of the global function; for a literal its `global_symbol`, or "".
        function: The function.
        target: Target that the function is compiled for.
    """

    name: str
    function: Function
    target: Target


def marked_functions(mod: IRModule) -> Iterator[MarkedFunction]:
    """Yield the functions that a program assigns to toolchains, globals and literals, in program order."""
    for var, root in mod.graph_functions.items():
        for expr in post_order(root):
            if isinstance(expr, Function) and is_marked(expr):
                name = var.name if expr is root else str(expr.attrs.get(SYMBOL, ""))
                yield MarkedFunction(name, expr, marked_target(expr))


def given_functions(mod: IRModule, target: str) -> tuple[list[Instruction], tuple[MarkedFunction, ...]]:
    """Return the functions of toolchains, after assigning an unpartitioned program to the target.

    Args:
        mod: The program.
        target: Target of the whole program if it assigns no function to a toolchain.

    Returns:
        The decision to assign the whole program, if needed, and the functions after it.

    Raises:
        UsageError: The program assigns no function, and there is no target.
    """
    functions = tuple(marked_functions(mod))
    if functions:
        return [], functions
    if not target:
        raise UsageError(
            "the program assigns no function to a toolchain, and no target for the whole program is given",
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
    """Set options on the targets of the functions that a program assigns to a toolchain.

    Args:
        mod: The program; without functions of the toolchain it stays unchanged.
        toolchain: Name of the toolchain.
        options: Values by name of the option; None unsets it.
        functions: Names of the functions; empty: all of the toolchain.

    Raises:
        UsageError: An option is unknown or belongs to another toolchain, or a value is not allowed.

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
    for marked in marked_functions(mod):
        is_selected = marked.target.toolchain == toolchain and (not functions or marked.name in functions)
        target = marked.target.with_options(**options) if is_selected else marked.target
        if target != marked.target:
            attrs = marked.function.attrs.updated(target=str(target))
            replacements[marked.function] = with_fields(marked.function, attrs=attrs)
    return with_marked_functions(mod, replacements)


def change_target_option(
    mod: IRModule, toolchain: str, option: str, changed: Callable[[str | None], str | None], target: str = ""
) -> IRModule:
    """Change an option on the targets of all functions that a program assigns to a toolchain.

    Args:
        mod: The program.
        toolchain: Name of the toolchain.
        option: Name of the option, whose values are texts.
        changed: Function from the value of a target to its new value; None stands for no value.
        target: Target of the whole program if it assigns no function to a toolchain; "" for none.
    """
    marked = tuple(marked_functions(mod))
    if not marked and target:
        mod = PartitionWhole(target)(mod)
        marked = tuple(marked_functions(mod))
    chosen = [function for function in marked if function.target.toolchain == toolchain]
    for value in dict.fromkeys(function.target.option(option) for function in chosen):
        names = [function.name for function in chosen if function.target.option(option) == value]
        text = None if value is None else str(value)
        mod = set_target_options(mod, toolchain, {option: changed(text)}, names)
    return mod


def toolchain_functions(mod: IRModule, toolchain: str, target: str) -> list[Expr]:
    """Return the functions that a toolchain runs.

    Args:
        mod: The program.
        toolchain: Name of the toolchain.
        target: Target of the whole program if it assigns no function to a toolchain; "" for none.
    """
    marked = tuple(marked_functions(mod))
    if not marked and target and Target.parse(target).toolchain == toolchain:
        return list(mod.graph_functions.values())
    return [function.function for function in marked if function.target.toolchain == toolchain]


def with_marked_functions(mod: IRModule, replacements: Mapping[Expr, Expr]) -> IRModule:
    """Return a program with some functions of toolchains replaced."""
    if not replacements:
        return mod
    functions = {
        var: substitute(function, dict(replacements)) if isinstance(function, Function) else function
        for var, function in mod.functions.items()
    }
    return with_module_fields(mod, functions=functions)  # type: ignore[arg-type]  # functions for functions
