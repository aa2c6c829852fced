"""A sub-graph as a program of its own, for measuring."""

from __future__ import annotations

from intarsia.collage.sub_graph.constant_placement import ConstantPlacement
from intarsia.collage.sub_graph.outline import outline
from intarsia.collage.sub_graph.sub_graph import SubGraph
from intarsia.ir import NO_ATTRS, Attrs, Function, IRModule
from intarsia.passes.functions.call_graph import CallGraph
from intarsia.support.errors import UsageError


def extract_function(
    sub_graph: SubGraph,
    attrs: Attrs = NO_ATTRS,
    constants: ConstantPlacement = ConstantPlacement.BOUND,
) -> Function:
    """The function that a sub-graph computes, with typed parameters; the program is left as it is.

    Its body calls a function literal for each nested sub-graph. Equal sub-graphs give structurally equal
    functions, so that costs can be kept by `structural_digest`. Linear in the sub-graph.

    Args:
        sub_graph: One that can become a function, of any shape.
        attrs: Attributes of the function.
        constants: Treatment of the constants that it uses.

    Raises:
        UsageError: It cannot become a function.
    """
    reason = sub_graph.structure_complaint
    if reason is not None:
        raise UsageError(f"the sub-graph {sub_graph} is no function: it {reason}")
    return outline(sub_graph, attrs, constants).function


def extract_module(
    sub_graph: SubGraph,
    mod: IRModule,
    attrs: Attrs = NO_ATTRS,
    constants: ConstantPlacement = ConstantPlacement.BOUND,
) -> IRModule:
    """The extracted function as @main, with the global functions that it calls.

    Args:
        sub_graph: Sub-graph, as in `extract_function`.
        mod: The module that the sub-graph's function is of.
        attrs: Attributes, as in `extract_function`.
        constants: Treatment of constants, as in `extract_function`.

    Raises:
        UsageError: It cannot become a function, or it calls @main.
    """
    main = extract_function(sub_graph, attrs, constants)
    alone = IRModule.from_expr(main)
    called = CallGraph.of(mod.with_function("main", main)).reachable(["main"]) - {"main"}
    if _calls_main(mod.with_function("main", main), called):
        raise UsageError(f"the sub-graph {sub_graph} calls @main, so that it cannot stand alone")
    functions = {var: function for var, function in mod.functions.items() if var.name in called}
    return IRModule({**alone.functions, **functions}, mod.attrs)


def _calls_main(mod: IRModule, names: frozenset[str]) -> bool:
    calls = CallGraph.of(mod).callees
    return any("main" in calls[name] for name in (*names, "main"))
