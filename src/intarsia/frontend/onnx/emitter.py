"""Expressions to ONNX nodes, without recursion.

A scope's expressions are emitted in order (ir.scope); entering a branch, the body of a let or an inlined
function pushes a frame, leaving it runs what was to follow. Scopes of a function share one table of names,
since each expression is in one of them; a function that is inlined gets a new one each time.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

from intarsia.frontend.onnx.node_origin import write_origin
from intarsia.frontend.onnx.value_names import (
    ABSENT_NAME,
    Environment,
    FunctionValue,
    Names,
    field_names,
    flat,
    flat_results,
    flat_types,
    single,
    unflatten,
)
from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Type,
    Var,
)
from intarsia.ir.scope import Scope, ScopedProgram, place
from intarsia.op.attribute_protos import attribute_to_proto
from intarsia.op.counted_rows_op import COUNTED_BOXES, COUNTED_INDICES
from intarsia.op.infer import returns_tuple
from intarsia.op.intarsia_ops import layout_permutation
from intarsia.op.node import OUTPUTS
from intarsia.op.onnx_types import type_to_proto
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.simulated_quantize_op import SIMULATED_QUANTIZE
from intarsia.op.token_append_op import APPENDED_TOKENS
from intarsia.op.token_attention_op import ATTENTION_OF_TOKENS
from intarsia.op.token_filter_op import FILTER_OF_TOKENS
from intarsia.op.token_pool_op import POOL_OF_TOKENS
from intarsia.op.token_positions_op import COUNTED_POSITIONS
from intarsia.op.token_window_op import WINDOW_OF_TOKENS
from intarsia.op.tree_ensemble_op import TREE_ENSEMBLE
from intarsia.support.errors import UnsupportedModelError
from intarsia.support.free_names import NameSupply

if TYPE_CHECKING:
    from onnx import GraphProto

_WITHOUT_EQUIVALENT = frozenset(
    {
        APPENDED_TOKENS,
        ATTENTION_OF_TOKENS,
        COUNTED_BOXES,
        COUNTED_INDICES,
        FILTER_OF_TOKENS,
        POOL_OF_TOKENS,
        SIMULATED_QUANTIZE,
        COUNTED_POSITIONS,
        TREE_ENSEMBLE,
        WINDOW_OF_TOKENS,
    }
)
"""Operators that ONNX cannot express by one node: native introduces them, or passes that quantise."""


@dataclass(slots=True)
class _Frame:
    """A scope during its emission into a graph.

    Attributes:
        members: Expressions of the scope that are still to be emitted.
        graph: The GraphProto that gets the nodes.
        names: Names of the values in sight.
        program: The scopes of the program.
        leave: Called after the last member.
    """

    members: Iterator[Expr]
    graph: Any
    names: Environment
    program: ScopedProgram
    leave: Callable[[], None]


@dataclass(slots=True)
class GraphEmitter:
    """Emits functions into one main graph.

    Attributes:
        graph: The main graph; initializers belong to it, wherever they are used.
        module: Global functions that may be called.
        constants: Constants met so far, by their name in the graph.
    """

    graph: GraphProto
    module: IRModule | None
    constants: dict[str, Constant] = field(default_factory=dict)
    _supply: NameSupply = field(default_factory=NameSupply)
    _node_names: NameSupply = field(default_factory=NameSupply)
    _constant_names: dict[Constant, str] = field(default_factory=dict)
    _stack: list[_Frame] = field(default_factory=list)
    _calling: list[str | Function] = field(default_factory=list)

    def fresh(self, hint: str) -> str:
        """Reserve a name of the graph that is not in use yet, made from the hint."""
        return self._supply.fresh(hint or "value")

    def emit_function(self, function: Function, args: list[str]) -> list[str]:
        """Emit a function's body into the main graph; returns the names of its results, flattened."""
        results: list[str] = []
        names: Environment = ChainMap(dict(zip(function.params, args, strict=True)))
        program = place(function)
        scope = program.inner[function, len(function.params)]

        def leave() -> None:
            results.extend(flat_results(self._result_names(function.body, names)))

        self._enter(scope, self.graph, names, program, leave)
        # An explicit stack: nested branches and calls may be deeper than Python's recursion limit.
        while self._stack:
            frame = self._stack[-1]
            expr = next(frame.members, None)
            if expr is None:
                self._stack.pop()
                frame.leave()
            else:
                self._emit(expr, frame)
        return results

    def _enter(
        self,
        scope: Scope,
        graph: GraphProto,
        names: Environment,
        program: ScopedProgram,
        leave: Callable[[], None],
    ) -> None:
        self._stack.append(_Frame(iter(program.members[scope]), graph, names, program, leave))

    def _names(self, expr: Expr, names: Environment) -> Names:
        if expr in names:
            return names[expr]
        match expr:
            case Constant():
                return self._constant(expr)
            case Tuple(fields=()):
                return ABSENT_NAME
            case Var():
                raise UnsupportedModelError(
                    f"variable %{expr.name} is not defined inside the exported function"
                )
            case _:
                kind = type(expr).__name__
                raise UnsupportedModelError(f"a {kind} stands where ONNX needs a tensor")

    def _result_names(self, root: Expr, names: Environment) -> Names:
        """Names of what a graph returns, where an empty tuple is no value instead of an absent one."""
        return () if isinstance(root, Tuple) and not root.fields else self._names(root, names)

    def _constant(self, constant: Constant) -> str:
        if constant not in self._constant_names:
            hint = constant.span.node if constant.span else "constant"
            name = self._constant_names[constant] = self.fresh(hint)
            self.constants[name] = constant
        return self._constant_names[constant]

    def _emit(self, expr: Expr, frame: _Frame) -> None:
        names = frame.names
        match expr:
            case Tuple():
                names[expr] = tuple(self._names(item, names) for item in expr.fields)
            case TupleGetItem():
                names[expr] = field_names(self._names(expr.tuple_value, names), expr)
            case Call():
                self._emit_call(expr, frame)
            case Let():
                names[expr.var] = self._names(expr.value, names)
                self._follow(expr, 2, expr.body, frame)
            case If():
                self._emit_if(expr, frame)
            case Function():
                names[expr] = FunctionValue(expr, frame.program, names)  # emitted where it is called
            case Var() | GlobalVar() | Constant() | Op():
                pass
            case _:
                assert_never(expr)

    def _emit_call(self, call: Call, frame: _Frame) -> None:
        match call.op:
            case Op():
                self._emit_operator(call, frame)
            case GlobalVar(name=name):
                self._inline_global(call, name, frame)
            case callee:
                value = self._names(callee, frame.names)
                if not isinstance(value, FunctionValue):
                    raise UnsupportedModelError(
                        "a function value is called that is not known at compile time; ONNX has none of these"
                    )
                self._inline_value(call, value, frame)

    def _follow(self, expr: Expr, position: int, root: Expr, frame: _Frame) -> None:
        """Emit an inner scope into the same graph; its value is the value of `expr`."""

        def leave() -> None:
            frame.names[expr] = self._names(root, frame.names)

        scope = frame.program.inner[expr, position]
        self._enter(scope, frame.graph, frame.names, frame.program, leave)

    def _inline_value(self, call: Call, value: FunctionValue, frame: _Frame) -> None:
        if value.function in self._calling:
            raise UnsupportedModelError(
                "a local function calls itself; ONNX has no recursive functions",
                help="use the operators Loop or Scan, or leave this function to the interpreter",
            )
        self._inline(call, value, frame, value.function)

    def _inline_global(self, call: Call, name: str, frame: _Frame) -> None:
        if self.module is None or name not in self.module:
            raise UnsupportedModelError(f"@{name} is called, but the module does not define it")
        if name in self._calling:
            raise UnsupportedModelError(
                f"@{name} is recursive; ONNX has no recursive functions",
                help="use the operators Loop or Scan, or leave this function to the interpreter",
            )
        if any(var.name == name for var in self.module.prim_funcs):
            raise UnsupportedModelError(f"@{name} is a loop function; ONNX has none")
        function = self.module[name]
        self._inline(call, FunctionValue(function, place(function), ChainMap()), frame, name)

    def _inline(self, call: Call, value: FunctionValue, frame: _Frame, caller: str | Function) -> None:
        """Emit the body of a function where it is called.

        Args:
            call: The call, which gets the names of the result.
            value: The function.
            frame: Frame of the call.
            caller: Function that must not be called again before the body is emitted: ONNX has no recursion.
        """
        function, names = value.function, value.names.new_child()
        for param, arg in zip(function.params, call.args, strict=True):
            names[param] = self._names(arg, frame.names)
        self._calling.append(caller)

        def leave() -> None:
            frame.names[call] = self._names(function.body, names)
            self._calling.remove(caller)

        scope = value.program.inner[function, len(function.params)]
        self._enter(scope, frame.graph, names, value.program, leave)

    def _emit_if(self, expr: If, frame: _Frame) -> None:
        node = frame.graph.node.add(op_type="If", name=self._node_name(expr))
        node.input.append(single(self._names(expr.cond, frame.names)))
        branches = ((1, "then_branch", expr.true_branch), (2, "else_branch", expr.false_branch))
        results: list[Names] = []
        for position, name, root in branches:
            attribute = node.attribute.add(name=name, type=5)
            attribute.g.name = f"{node.name}_{name}"
            self._subgraph(frame, frame.program.inner[expr, position], root, attribute.g, results)
        done = self._stack[-2]  # the frame of the first branch, which is left last
        leave = done.leave

        def leave_if() -> None:
            leave()
            shape = results[0]
            outputs = [self.fresh(f"{node.name}_output") for _ in flat(shape)]
            node.output.extend(outputs)
            frame.names[expr] = unflatten(shape, iter(outputs))

        done.leave = leave_if

    def _subgraph(
        self, frame: _Frame, scope: Scope, root: Expr, graph: GraphProto, results: list[Names]
    ) -> None:
        def leave() -> None:
            names = self._result_names(root, frame.names)
            results.append(names)
            _declare_results(graph, names, root.checked_type, self.fresh)

        self._enter(scope, graph, frame.names, frame.program, leave)

    def _emit_operator(self, call: Call, frame: _Frame) -> None:
        assert isinstance(call.op, Op)
        op_type, domain, attrs = _onnx_operator(call)
        bodies = [arg for arg in call.args if isinstance(arg, Function)]
        node = frame.graph.node.add(op_type=op_type, domain=domain, name=self._node_name(call))
        if call.span is not None:
            write_origin(node, call.span.node)
        for arg in call.args:
            if not isinstance(arg, Function):
                node.input.append(single(self._names(arg, frame.names)))
        count = attrs.get(OUTPUTS, 1)
        assert isinstance(count, int)
        outputs = [self.fresh(node.name if count == 1 else f"{node.name}_{i}") for i in range(count)]
        node.output.extend(outputs)
        for name, value in attrs.items():
            if name != OUTPUTS:
                node.attribute.append(attribute_to_proto(name, value, op_type, domain))
        is_tuple = OUTPUTS in attrs or (not domain and returns_tuple(op_type, domain, count))
        frame.names[call] = tuple(outputs) if is_tuple else outputs[0]
        for body in bodies:
            self._emit_body(body, node, frame)

    def _emit_body(self, body: Function, node: Any, frame: _Frame) -> None:
        attribute = node.attribute.add(name="body", type=5)
        graph = attribute.g
        graph.name = f"{node.name}_body"
        names = frame.names
        for param in body.params:
            declared_name = self.fresh(param.name)
            names[param] = declared_name
            declared = graph.input.add(name=declared_name)
            if param.checked_type is not None:
                declared.type.CopyFrom(type_to_proto(param.checked_type))
        scope = frame.program.inner[body, len(body.params)]

        def leave() -> None:
            results = self._result_names(body.body, names)
            _declare_results(graph, results, body.body.checked_type, self.fresh)

        self._enter(scope, graph, names, frame.program, leave)

    def _node_name(self, expr: Call | If) -> str:
        if expr.span is not None:
            return self._node_names.fresh(expr.span.node or "value")
        hint = str(expr.op) if isinstance(expr, Call) else "If"
        return self._node_names.fresh(hint.replace("::", "_"))


def _onnx_operator(call: Call) -> tuple[str, str, Attrs]:
    """Operator type, domain and attributes of the node that stands for a call."""
    op = call.op
    assert isinstance(op, Op)
    if op.domain != INTARSIA_DOMAIN or op.name in _WITHOUT_EQUIVALENT:
        return op.name, op.domain, call.attrs
    if op.name == "layout_transform":
        order = layout_permutation(str(call.attrs["src_layout"]), str(call.attrs["dst_layout"]))
        return "Transpose", "", Attrs({"perm": order})
    return "Identity", "", Attrs()


def _declare_results(graph: Any, names: Names, type_: Type | None, fresh: Callable[[str], str]) -> None:
    """Make a value the outputs of a nested graph: each is produced in it, exactly once.

    Args:
        graph: The GraphProto, with all its nodes.
        names: Names of the value.
        type_: Its type, if that is known.
        fresh: Reserves a name, made from a hint.

    Raises:
        UnsupportedModelError: An absent value or a function is returned.
    """
    produced = {name for node in graph.node for name in node.output}
    results = flat_results(names)
    for name, own_type in zip(results, flat_types(type_, len(results)), strict=True):
        unique = name
        if unique not in produced or unique in {item.name for item in graph.output}:
            unique = fresh(f"{name}_result")
            graph.node.add(op_type="Identity", input=[name], output=[unique])
        output = graph.output.add(name=unique)
        if own_type is not None:
            output.type.CopyFrom(type_to_proto(own_type))
