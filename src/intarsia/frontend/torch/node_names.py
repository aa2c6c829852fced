"""Names of modules as names of ONNX nodes, which become the spans of a program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, Final

from intarsia.support.free_names import NameSupply

_SCOPES: Final = "pkg.torch.onnx.name_scopes"
_HOOK: Final = "_empty_nn_module_stack_from_metadata_hook"
"""Module path that torch.export gives operators that it adds itself."""

_ROOT: Final = re.compile(r"^(L\[[^\]]*\]|L__self__|getattr\(.*?\))\.?")
"""Root of a path in graphs of dynamo: the local variable that holds the module, such as L['self']."""

_ATTRIBUTE: Final = re.compile(r"\._(?:modules|parameters|buffers)\['([^']*)'\]|\.([A-Za-z_]\w*)|\[(\d+)\]")


def name_nodes(graph: Any) -> None:
    """Name each node of an onnx_ir graph after its module and operator, such as "layers.3.attn/matmul".

    The exporter's names are unique but say nothing ("node_MatMul_51"), and what it stores besides would be
    carried through the compiler.

    Args:
        graph: Graph of an onnx_ir model; its nodes are changed.
    """
    supply = NameSupply()
    for node in graph.all_nodes():
        scopes = _scopes(node.metadata_props.get(_SCOPES, ""))
        if scopes:
            path, operator = module_path(scopes[-2] if len(scopes) > 1 else ""), scopes[-1]
            node.name = supply.fresh(f"{path}/{operator}" if path else operator)
        node.metadata_props.clear()


def module_path(path: str) -> str:
    """Return the path of a module without the root: "layers.0.attn" for "L['self'].layers.0.attn"."""
    return "" if path == _HOOK else _ROOT.sub("", path)


def attribute_path(source: str) -> str:
    """Return the path of a parameter from its source in dynamo, such as "layers.0.weight"; "" if it has none.

    Args:
        source: Python expression, such as "L['self']._modules['layers']._modules['0']._parameters['weight']".
    """
    return ".".join(_attributes(_ROOT.sub(".", source)))


def _attributes(text: str) -> Iterator[str]:
    for match in _ATTRIBUTE.finditer(text):
        yield next(part for part in match.groups() if part is not None)


def _scopes(text: str) -> list[str]:
    """Parse the list that the exporter stores as text."""
    try:
        return [str(item) for item in ast.literal_eval(text)] if text else []
    except (SyntaxError, ValueError):
        return []
