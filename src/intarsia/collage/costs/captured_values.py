"""The values within a program for one set of inputs: what parts of it are measured and checked with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.ir import Expr, Function, TensorType, Tuple, Var
from intarsia.measure.measure_input import Workload
from intarsia.measure.testbed import Testbed

Array = npt.NDArray[Any]


def _nothing() -> Mapping[Expr, Array]:
    return MappingProxyType({})


@dataclass(frozen=True, eq=False)
class CapturedValues:
    """Values of expressions of @main, outside of branches and bodies, mapped from files.

    With them a part of a program is measured on the data that it will see: random numbers would be no valid
    indices or shapes, and other than what a Sqrt or a Relu is used to.

    Attributes:
        capture: Gives them; called when they are first needed, which they are not if all costs are known.
    """

    capture: Callable[[], Mapping[Expr, Array]] = _nothing

    @cached_property
    def arrays(self) -> Mapping[Expr, Array]:
        """By expression.

        Raises:
            IntarsiaError: No reference computes the program.
        """
        return self.capture()

    @classmethod
    def of(cls, workload: Workload, graph: DataflowGraph, testbed: Testbed) -> CapturedValues:
        """What a run of a program gives, on a workload's inputs, with every value as a result.

        Args:
            workload: Its module's @main is the graph's function.
            graph: The graph of @main.
            testbed: Runs it.
        """
        return cls(partial(_captured, workload, graph, testbed))


def _captured(workload: Workload, graph: DataflowGraph, testbed: Testbed) -> Mapping[Expr, Array]:
    main = graph.function
    exprs = tuple(node.expr for node in graph if _is_captured(graph, node.index))
    params: dict[Expr, str] = {param: param.name for param in main.params}
    attrs = main.attrs.updated(output_names=None)
    module = workload.module.with_function("main", Function(main.params, Tuple(exprs), attrs))
    asked = replace(workload, module=module, expected=None, by_structure=False, is_checked=False)
    folder = testbed.prepare(asked)
    inputs = folder.inputs()
    found = {param: inputs[name] for param, name in params.items() if name in inputs}
    found.update(zip(exprs, folder.gate().expected, strict=True))
    return found


def _is_captured(graph: DataflowGraph, index: int) -> bool:
    node = graph[index]
    return (
        node.block is not None
        and node.block.opener is None
        and index not in graph.everywhere
        and isinstance(node.expr.checked_type, TensorType)
        and not isinstance(node.expr, Var)
    )
