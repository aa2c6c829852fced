"""ONNX message in, program out."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from intarsia.frontend.onnx.constant_node import constant_value, owned_constant
from intarsia.frontend.onnx.contrib import ImpliedSizeError, NoDefinitionError, expand, has_definition
from intarsia.frontend.onnx.finishing import drop_unused_outputs
from intarsia.frontend.onnx.graph_check import check_names, check_operators, check_opsets, in_execution_order
from intarsia.frontend.onnx.graph_walk import label, nodes_of
from intarsia.frontend.onnx.import_limits import ImportLimits, current_limits
from intarsia.frontend.onnx.loop import always, loop_state_type, without_condition
from intarsia.frontend.onnx.opaque_reasons import OpaqueReasons
from intarsia.frontend.onnx.opset import has_foreign_body, to_pinned_opset
from intarsia.frontend.onnx.read_model import RawModel, read_model
from intarsia.frontend.onnx.shapes import fixed_input_types, more_precise, substituted, type_hints
from intarsia.frontend.onnx.symbolic_shapes import infer_symbolic_types
from intarsia.frontend.onnx.zip_map import replace_zip_maps
from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Op,
    Span,
    Tuple,
    Type,
    Var,
    join_types,
    with_fields,
)
from intarsia.ir.rule_errors import HELP
from intarsia.op import absent, call, tuple_get
from intarsia.op.control_flow import scan_parameter_types
from intarsia.op.infer import check_attributes, returns_tuple
from intarsia.op.node import OUTPUTS
from intarsia.op.onnx_types import attributes_from_protos, type_from_proto
from intarsia.op.opaque import usable_domain
from intarsia.support.errors import IntarsiaError, InvalidModelError
from intarsia.support.free_names import NameSupply

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

Shape = Sequence[int | str]
Scope = ChainMap[str, Expr]

INPUT_RANGE = "intarsia.input_range."
"""Prefix of a model's metadata that gives the range of an integer input: "0,30522", end excluded."""

NOTES = "import_notes"
"""Attribute of a module: sentences about what the import gives otherwise than the file has it."""


def from_onnx(
    model: str | Path | bytes | ModelProto,
    shapes: Mapping[str, Shape] | None = None,
    *,
    limits: ImportLimits | None = None,
) -> IRModule:
    """Import an ONNX model of any opset.

    Args:
        model: A path, the bytes of a file, or the message. Weights are read from it, and from files beside
            it, once; they are not copied again.
        shapes: Shapes to fix, by input name: {"x": (1, 3, 224, 224)}. A symbolic dimension that an input
            fixes is fixed everywhere. Without it symbolic dimensions stay.
        limits: Maximum numbers of elements of a value and of nodes, so that a small file cannot exhaust the
            machine. Default: `ImportLimits()`, or the limits of `default_limits` around the call.

    Returns:
        A module with the function @main: one parameter per input, attributes `output_names` and, where the
        model has them, `input_ranges`. The span of each expression is its ONNX node. The module's attribute
        `import_notes`, if there is one, lists differences between the import and the file: scores as a tensor
        instead of the maps of a ZipMap.

    Raises:
        UsageError: No such file, or shapes that do not fit.
        InvalidModelError: Damaged, cyclic or ill-typed model.
        UnsupportedModelError: Valid, but an operator or type that Intarsia lacks, or beyond the limits.
    """
    limits = limits or current_limits()
    return import_raw(read_model(model, limits), shapes or {}, limits)


def import_raw(raw: RawModel, shapes: Mapping[str, Shape], limits: ImportLimits) -> IRModule:
    """Import a model that was read; see `from_onnx`.

    Args:
        raw: The model; its message is changed.
        shapes: Shapes to fix, by input name.
        limits: Limits on the size of the program.
    """
    check_opsets(raw.proto)
    check_operators(raw.proto)
    check_names(raw.proto.graph)
    notes = replace_zip_maps(raw.proto)
    limits.check_functions(raw.proto)
    if any(map(has_foreign_body, nodes_of(raw.proto.graph))):
        # onnx infers their types, and ends the process where a node reads its own result.
        in_execution_order(raw.proto.graph, _defined_outside(raw))
    pinned = to_pinned_opset(raw)
    drop_unused_outputs(pinned.graph)
    importer = _Importer(raw, pinned, limits)
    main = importer.import_with_implied_sizes(shapes)
    notes += importer.opaque.notes()
    attrs = {"name": raw.proto.graph.name or raw.name, **({NOTES: notes} if notes else {})}
    return IRModule({GlobalVar("main", checked_type=main.checked_type): main}, Attrs(attrs))


def _defined_outside(raw: RawModel) -> set[str]:
    """Return the names of the inputs and weights of the main graph."""
    graph = raw.proto.graph
    weights = {item.name for item in graph.initializer} | {
        item.values.name for item in graph.sparse_initializer
    }
    return {item.name for item in graph.input} | weights | set(raw.weights)


def import_notes(module: IRModule) -> tuple[str, ...]:
    """Return sentences about differences between the import and the file; mostly none."""
    notes = module.attrs.get(NOTES, ())
    return tuple(map(str, notes)) if isinstance(notes, tuple) else ()


@dataclass(frozen=True, slots=True)
class _Region:
    """A graph during its import: the visible values by name, and further facts about types.

    Attributes:
        scope: Expressions of the values by name.
        declared: Types that the model declares.
        propagated: Types that onnx infers over the whole model.
    """

    scope: Scope
    declared: Mapping[str, Type]
    propagated: Mapping[str, Type]


class _Importer:
    """State of one import: the model, the source of external data, and the limits."""

    def __init__(self, raw: RawModel, proto: ModelProto, limits: ImportLimits) -> None:
        self.opaque = OpaqueReasons()
        self._raw = raw
        self._proto = proto
        self._limits = limits

    def import_with_implied_sizes(self, shapes: Mapping[str, Shape]) -> Function:
        """Return @main, in which symbols that can only have one size, by its operators, have it."""
        while True:
            try:
                return self.import_main(shapes)
            except ImpliedSizeError as implied:  # each makes one symbol a number, so this ends
                shapes = {**shapes, implied.symbol: (implied.size,)}

    def import_main(self, shapes: Mapping[str, Shape]) -> Function:
        graph = self._proto.graph
        names = {item.name for item in self._raw.proto.graph.input}
        constants = self._main_constants(graph)
        inputs = [item for item in graph.input if item.name in names and item.name not in constants]
        given = fixed_input_types(inputs, shapes)
        params = self._params(inputs, given.types)
        declared = {
            name: substituted(type_, given.bound) or type_ for name, type_ in type_hints(graph).items()
        }
        propagated = infer_symbolic_types(self._proto, self._raw.weights, given.types)
        results = self._import_graph(graph, _Region(ChainMap(dict(params), constants), declared, propagated))
        body = results[0] if len(results) == 1 else Tuple(tuple(results))
        attrs: dict[str, Any] = {"output_names": _distinct(item.name for item in graph.output)}
        ranges = self._input_ranges(params)
        if ranges:
            attrs["input_ranges"] = ranges
        return Function(tuple(params.values()), body, Attrs(attrs))

    def _main_constants(self, graph: GraphProto) -> dict[str, Expr]:
        """The weights, and initializers that the opset conversion added."""
        weights: dict[str, Expr] = {
            name: owned_constant(array, Span(self._raw.name, name))
            for name, array in self._raw.weights.items()
        }
        return {
            **self._initializers(item for item in graph.initializer if item.name not in weights),
            **weights,
        }

    def _initializers(self, tensors: Iterable[TensorProto]) -> dict[str, Expr]:
        return {
            tensor.name: owned_constant(self._raw.source.read(tensor), Span(self._raw.name, tensor.name))
            for tensor in tensors
        }

    def _params(self, inputs: Sequence[ValueInfoProto], types: Mapping[str, Type | None]) -> dict[str, Var]:
        params = {
            item.name: Var(item.name, checked_type=types[item.name], span=Span(self._raw.name, item.name))
            for item in inputs
        }
        for name, param in params.items():
            self._limits.check_value(name, param)
        return params

    def _input_ranges(self, params: Mapping[str, Var]) -> tuple[tuple[str, int, int], ...]:
        entries = {
            item.key.removeprefix(INPUT_RANGE): item.value
            for item in self._proto.metadata_props
            if item.key.startswith(INPUT_RANGE)
        }
        return tuple((name, *_bounds(name, entries[name])) for name in sorted(entries) if name in params)

    def _import_graph(self, graph: GraphProto, region: _Region) -> list[Expr]:
        """Import the nodes into the region's scope; returns the graph's outputs."""
        scope = region.scope
        for node in in_execution_order(graph, scope):
            try:
                self._bind(
                    node, region, self._expand_contributed(node, scope) or self._import_node(node, scope)
                )
            except IntarsiaError as error:
                error.add_note(f"at node {label(node)!r} ({node.op_type}) of {self._raw.name}")
                raise
            except (ImpliedSizeError, MemoryError, RecursionError):
                raise
            except Exception as error:
                raise self._foreign(error, node) from error
        missing = [item.name for item in graph.output if item.name not in scope]
        if missing:
            raise InvalidModelError(f"the graph's output {missing[0]!r} is produced by no node")
        return [scope[item.name] for item in graph.output]

    def _expand_contributed(self, node: NodeProto, scope: Scope) -> Sequence[Expr] | None:
        """Expand a contributed operator by its definition; None for other nodes."""
        if not has_definition(node.domain, node.op_type):
            self.opaque.record(node, "ONNX's operators do not express it")
            return None
        args = [scope[name] if name else absent() for name in node.input]
        attrs = attributes_from_protos(list(node.attribute))
        is_declared = usable_domain(node.domain) is not None
        try:
            return expand(node, args, attrs, self._span(node), is_declared=is_declared)
        except NoDefinitionError as reason:
            self.opaque.record(node, f"ONNX's operators do not express this form of it: {reason}")
            return None

    def _foreign(self, error: Exception, node: NodeProto) -> InvalidModelError:
        """Return the user's error for a node on which onnx or the import raised an internal one."""
        detail = " ".join(f"{type(error).__name__}: {error}".split())
        named = InvalidModelError(f"operator {node.op_type!r} cannot be read: {detail[:300]}", help=HELP)
        named.add_note(f"at node {label(node)!r} ({node.op_type}) of {self._raw.name}")
        return named

    def _import_node(self, node: NodeProto, scope: Scope) -> Expr:
        match node.op_type, node.domain:
            case "Constant", "":
                return owned_constant(constant_value(node, self._raw.source), self._span(node))
            case "If", "":
                return self._import_if(node, scope)
            case _:
                return self._import_call(node, scope)

    def _span(self, node: NodeProto) -> Span:
        return Span(self._raw.name, label(node), node.op_type)

    def _import_if(self, node: NodeProto, scope: Scope) -> Expr:
        graphs = {item.name: item.g for item in node.attribute if item.HasField("g")}
        if len(node.input) != 1 or not node.input[0]:
            raise InvalidModelError(f"operator 'If' has {len(node.input)} inputs, expected its condition")
        branches = [self._import_branch(graphs, name, node, scope) for name in ("then_branch", "else_branch")]
        types = [branch.checked_type for branch in branches]
        joined = join_types(*types)
        if joined is None and None not in types:
            raise InvalidModelError(f"the branches of an If return {types[0]} and {types[1]}")
        return If(scope[node.input[0]], *branches, checked_type=joined, span=self._span(node))

    def _import_branch(
        self, graphs: Mapping[str, GraphProto], name: str, node: NodeProto, scope: Scope
    ) -> Expr:
        if name not in graphs:
            raise InvalidModelError(f"operator 'If' has no {name}")
        results = self._import_graph(graphs[name], self._inner(graphs[name], scope))
        if len(results) != len(node.output):
            raise InvalidModelError(
                f"the {name} of an If returns {len(results)} values, expected {len(node.output)}"
            )
        return results[0] if len(results) == 1 else Tuple(tuple(results), span=self._span(node))

    def _inner(self, graph: GraphProto, scope: Scope, params: Mapping[str, Var] | None = None) -> _Region:
        inner = {**self._initializers(graph.initializer), **(params or {})}
        return _Region(scope.new_child(inner), type_hints(graph), {})

    def _import_call(self, node: NodeProto, scope: Scope) -> Expr:
        args = [scope[name] if name else absent() for name in node.input]
        bodies = [
            self._import_body(item.g, scope, node, args) for item in node.attribute if item.HasField("g")
        ]
        if node.op_type == "Loop" and len(node.input) > 1 and not node.input[1]:
            args[1], bodies = always(self._span(node)), [without_condition(body) for body in bodies]
        attrs = attributes_from_protos(list(node.attribute))
        check_attributes(Op(node.op_type, node.domain), attrs)
        used = [position for position, name in enumerate(node.output, start=1) if name]
        outputs = len(node.output) if returns_tuple(node.op_type, node.domain, 1) else max(used, default=1)
        return call(
            node.op_type,
            *args,
            *bodies,
            domain=node.domain,
            outputs=outputs,
            span=self._span(node),
            **attrs,
        )

    def _import_body(self, graph: GraphProto, scope: Scope, node: NodeProto, args: list[Expr]) -> Function:
        """The body of a Loop, Scan or SequenceMap; what it captures is shared with the outside."""
        check_names(graph)
        types = {item.name: type_from_proto(item.type) for item in graph.input}
        if node.op_type == "Loop":
            for item, arg in zip(graph.input[2:], args[2:], strict=False):  # the call checks the numbers
                types[item.name] = loop_state_type(types[item.name], arg.checked_type)
        if node.op_type == "Scan":
            attrs = attributes_from_protos(list(node.attribute))
            steps = scan_parameter_types(tuple(arg.checked_type for arg in args), attrs)
            for item, step in zip(graph.input, steps, strict=False):
                types[item.name] = types[item.name] or step
        params = self._params(graph.input, types)
        results = self._import_graph(graph, self._inner(graph, scope, params))
        return Function(tuple(params.values()), Tuple(tuple(results)))

    def _bind(self, node: NodeProto, region: _Region, value: Expr | Sequence[Expr]) -> None:
        if not isinstance(value, Expr):
            for name, item in zip(node.output, value, strict=False):  # unused ones may be missing at the end
                if name:
                    region.scope[name] = _hinted(name, item, region)
            return
        is_tuple = OUTPUTS in value.attrs if isinstance(value, Call) else len(node.output) > 1
        if isinstance(value, Constant) and is_tuple:
            raise InvalidModelError(f"a Constant node has {len(node.output)} outputs, expected 1")
        for position, name in enumerate(node.output):
            if name:
                item = tuple_get(value, position) if is_tuple else value
                region.scope[name] = _hinted(name, item, region)
                self._limits.check_value(name, item)


def _hinted(name: str, value: Expr, region: _Region) -> Expr:
    """Refine the type of a value by the types that onnx propagates and that the model declares.

    Raises:
        InvalidModelError: Declared and inferred type are of different kinds or element types.
    """
    for hints in (region.propagated, region.declared):
        declared, type_ = hints.get(name), value.checked_type
        if declared is None:
            continue
        if type_ is not None and join_types(type_, declared) is None:
            raise InvalidModelError(f"{name!r} is declared as {declared}, but is computed as {type_}")
        value = with_fields(value, checked_type=more_precise(type_, declared, hints is region.propagated))
    return value


def _bounds(name: str, text: str) -> tuple[int, int]:
    low, _, high = text.partition(",")
    try:
        return int(low), int(high)
    except ValueError:
        raise InvalidModelError(
            f"the metadata {INPUT_RANGE + name!r} is {text!r}, expected two numbers such as '0,10'"
        ) from None


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    """The names in order, repeated ones (a value may be returned twice) with a number."""
    supply = NameSupply()
    return tuple(map(supply.fresh, names))
