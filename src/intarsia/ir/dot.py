"""A program as a graph in the DOT language of Graphviz."""

from __future__ import annotations

import json
from collections.abc import Iterator

from intarsia.ir.attributes import Attrs
from intarsia.ir.expr import Call, Constant, Expr, Function, GlobalVar, If, Let, Op, Tuple, TupleGetItem, Var
from intarsia.ir.literal import op_text, value_text
from intarsia.ir.module import IRModule
from intarsia.ir.traversal import children, post_order
from intarsia.target import UNCONSTRAINED

_LONGEST_LABEL = 60


def dot_text(mod: IRModule) -> str:
    """Return the graph functions of a program as a DOT graph: a cluster a function, a node an expression.

    Constants, operators and names of functions are written into the labels of the nodes that use them.
    """
    lines = ["digraph program {", "  node [shape=box, fontsize=10];", "  edge [fontsize=9];"]
    for number, (var, function) in enumerate(mod.graph_functions.items()):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_quoted('@' + var.name)};")
        lines += (f"    {line}" for line in _function_lines(function, f"f{number}_"))
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _function_lines(function: Function, prefix: str) -> Iterator[str]:
    names: dict[Expr, str] = {}
    for expr in post_order(function):
        if not _is_node(expr):
            continue
        names[expr] = f"{prefix}{len(names)}"
        style = ", style=filled, fillcolor=lightgrey" if isinstance(expr, Var) else ""
        yield f"{names[expr]} [label={_quoted(_label(expr))}{style}];"
        for position, child in _uses(expr):
            if child in names:
                label = f" [label={_quoted(str(position))}]" if _is_ordered(expr) else ""
                yield f"{names[child]} -> {names[expr]}{label};"


def _uses(expr: Expr) -> Iterator[tuple[int, Expr]]:
    """What an expression uses, with its position among the arguments; binders are no uses."""
    binders = len(expr.params) if isinstance(expr, Function) else int(isinstance(expr, Let | Call))
    callee = [(0, expr.op)] if isinstance(expr, Call) else []
    yield from (*callee, *enumerate(children(expr)[binders:]))


def _is_ordered(expr: Expr) -> bool:
    return isinstance(expr, Call) and len(expr.args) > 1


def _is_node(expr: Expr) -> bool:
    return not isinstance(expr, (Constant, Op, GlobalVar)) and not (
        isinstance(expr, Tuple) and not expr.fields
    )


def _label(expr: Expr) -> str:
    lines = [_name(expr)]
    if isinstance(expr, Call):
        lines += _attribute_lines(expr.attrs)
        lines += (
            f"{position}: {arg.checked_type} constant"
            for position, arg in enumerate(expr.args)
            if isinstance(arg, Constant)
        )
    if expr.checked_type is not None and not isinstance(expr, Function):
        lines.append(str(expr.checked_type))
    if expr.virtual_device != UNCONSTRAINED:
        lines.append(str(expr.virtual_device))
    return "\n".join(_shortened(line) for line in lines)


def _name(expr: Expr) -> str:
    match expr:
        case Call(op=Op() as op):
            return op_text(op)
        case Call(op=GlobalVar(name=name)):
            return f"call @{name}"
        case Call():
            return "call"
        case Var(name=name):
            return f"%{name}"
        case TupleGetItem(index=index):
            return f".{index}"
        case Tuple():
            return "tuple"
        case Function():
            return "result" if not expr.attrs else f"fn {{{', '.join(expr.attrs)}}}"
        case Let(var=var):
            return f"let %{var.name}"
        case If():
            return "if"
        case _:
            return type(expr).__name__


def _attribute_lines(attrs: Attrs) -> Iterator[str]:
    for name, value in attrs.items():
        yield f"{name}={value_text(value, lambda constant: str(constant.checked_type))}"


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST_LABEL else f"{line[: _LONGEST_LABEL - 3]}..."


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
