"""The device flow of a program: one rule for each kind of expression (reference C.3, unification)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from intarsia.ir import (
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
    post_order,
)
from intarsia.op.device_call import DeviceCallPlacement, is_device_copy, is_shape_operator, placement_of
from intarsia.passes.devices.conflict_lines import add_conflict_lines
from intarsia.passes.devices.device_domains import (
    DeviceConflictError,
    Domain,
    FieldsDomain,
    FunctionDomain,
    Site,
    main_leaf,
)
from intarsia.passes.devices.device_flow import DeviceFlow, Source, is_everywhere
from intarsia.passes.devices.indivisible_functions import insides, is_indivisible, marks_of
from intarsia.passes.devices.operator_bodies import OperatorBodies
from intarsia.target import UNCONSTRAINED, VirtualDevice


def flow_of(mod: IRModule, host: VirtualDevice) -> DeviceFlow:
    """The values of a program, and where they are needed. Linear, for types of bounded size.

    Args:
        mod: The program.
        host: Device of shapes.

    Raises:
        DeviceConflictError: Annotations contradict each other.
    """
    builder = _FlowBuilder(mod, host)
    try:
        builder.build()
    except DeviceConflictError as error:
        add_conflict_lines(error, mod)
        raise
    return builder.flow


@dataclass(slots=True)
class _FlowBuilder:
    mod: IRModule
    host: VirtualDevice
    flow: DeviceFlow = field(default_factory=DeviceFlow)
    globals: dict[str, FunctionDomain] = field(default_factory=dict)
    types: dict[Expr, Type | None] = field(default_factory=dict)
    bodies: OperatorBodies = field(default_factory=OperatorBodies)
    owner: str = ""

    def build(self) -> None:
        """Add all functions, and join what stands for one value."""
        functions = self.mod.graph_functions
        for var, function in functions.items():
            self.declare(var.name, function)
        for var, function in functions.items():
            self.add_function(var.name, function)
        self.bodies.pin(self.flow, self.mod)
        self.flow.join_aliases()

    def declare(self, name: str, function: Function) -> None:
        """Give a global function its domain, for the calls that are met before it."""
        self.owner = name
        self.globals[name] = self._declared(function)

    def _declared(self, function: Function) -> FunctionDomain:
        declared: FunctionDomain
        if is_indivisible(function):
            domain = self.flow.domains.new()
            for device, expr in marks_of(function):
                self.flow.domains.constrain(domain, Site(device, expr, self.owner))
            declared = FunctionDomain((domain,) * len(function.params), domain)
        else:
            params = tuple(self._bound(param) for param in function.params)
            declared = FunctionDomain(params, self.flow.domains.of_type(function.result_type))
            self._annotate(declared, function)
        self.flow.of[function] = declared
        return declared

    def _bound(self, var: Var, value_type: Type | None = None) -> Domain:
        if var not in self.flow.of:
            type_ = self.types[var] = var.checked_type or value_type
            self.flow.of[var] = self.flow.domains.of_type(type_)
            self._annotate(self.flow.of[var], var)
        return self.flow.of[var]

    def _type(self, expr: Expr) -> Type | None:
        """The type of a value; names bound by let may have none of their own."""
        while expr.checked_type is None and isinstance(expr, If):
            expr = expr.true_branch
        return self.types.get(expr, expr.checked_type)

    def _annotate(self, domain: Domain, expr: Expr) -> None:
        if expr.virtual_device != UNCONSTRAINED:
            self.flow.domains.constrain(domain, Site(expr.virtual_device, expr, self.owner))

    def add_function(self, name: str, function: Function) -> None:
        """Everything in a global function, children first."""
        self.owner = name
        if not is_indivisible(function):
            order = list(post_order(function, stop=insides(function)))
            for expr in reversed(order):  # outer lets first
                if isinstance(expr, Let):
                    self._bound(expr.var, self._type(expr.value))
            for expr in order:
                self.flow.sources[expr] = Source(expr)
                self._add(expr)

    def _add(self, expr: Expr) -> None:
        match expr:
            case Op() | Constant() | Var() | GlobalVar():
                self._add_name(expr)
            case Tuple():
                self._add_tuple(expr)
            case TupleGetItem():
                self._add_item(expr)
            case Call():
                self._add_call(expr)
            case Function():
                self._add_literal(expr)
            case Let():
                self.flow.follow(self.flow.sources[expr.value], self._bound(expr.var), self.owner)
                self._add_joint(expr, expr.body)
            case If():
                place = self._add_joint(expr, expr.true_branch, expr.false_branch)
                self.flow.need(self.flow.sources[expr.cond], main_leaf(place))
            case _:
                assert_never(expr)

    def _add_name(self, expr: Op | Constant | Var | GlobalVar) -> None:
        if isinstance(expr, Var):
            self._bound(expr)
        elif isinstance(expr, GlobalVar):
            known = self.globals.get(expr.name)
            self.flow.of[expr] = known or self.flow.domains.of_type(expr.checked_type)

    def _add_joint(self, expr: Let | If, *parts: Expr) -> Domain:
        """An expression whose value is that of one of its parts."""
        domain = self.flow.of[expr] = self.flow.domains.of_type(expr.checked_type or self._type(parts[0]))
        self._annotate(domain, expr)
        for part in parts:
            self.flow.follow(self.flow.sources[part], domain, self.owner, is_branch=len(parts) > 1)
        return domain

    def _add_tuple(self, expr: Tuple) -> None:
        flow = self.flow
        if not expr.fields:
            return
        sources = [flow.sources[item] for item in expr.fields]
        is_nested = any(source.base in flow.open_tuples for source in sources)
        if expr.virtual_device == UNCONSTRAINED and not is_nested:
            flow.open_tuples.add(expr)
            return
        domain = flow.of[expr] = flow.domains.of_type(expr.checked_type)
        self._annotate(domain, expr)
        for index, source in enumerate(sources):
            flow.need(source, domain.fields[index] if isinstance(domain, FieldsDomain) else domain)

    def _add_item(self, expr: TupleGetItem) -> None:
        source = self.flow.field(self.flow.sources[expr.tuple_value], expr.index)
        self.flow.sources[expr] = source
        if expr.virtual_device != UNCONSTRAINED and not is_everywhere(source.base):
            site = Site(expr.virtual_device, expr, self.owner)
            if source.base in self.flow.open_tuples or not self.flow.domains.constrain(
                self.flow.domain_of(source), site, is_required=False
            ):
                self._add_view(expr, source)

    def _add_view(self, expr: Expr, source: Source) -> None:
        """The value of another expression, held in a place of its own."""
        place = self.flow.of[expr] = self.flow.domains.of_type(expr.checked_type)
        self._annotate(place, expr)
        self.flow.need(source, place)
        self.flow.views[expr] = source
        self.flow.sources[expr] = Source(expr)

    def _add_call(self, call: Call) -> None:
        placement = placement_of(call)
        if placement is not None:
            self._add_placement(call, placement)
        elif is_device_copy(call):
            source = self.flow.sources[call.args[0]]
            self.flow.sources[call] = source
            if not is_everywhere(source.base):
                self._add_view(call, source)
        elif isinstance(call.op, Op) or self._callee(call.op) is None:
            self._add_operator(call)
        else:
            self._add_function_call(call)

    def _add_placement(self, call: Call, placement: DeviceCallPlacement) -> None:
        source = self.flow.sources[call.args[0]]
        if placement.constrain_body:
            self._constrain(source, Site(placement.device, call, self.owner))
        self.flow.sources[call] = replace(source, is_border=True)
        if placement.constrain_result and not is_everywhere(source.base):
            if placement.constrain_body and source.base not in self.flow.open_tuples:
                self.flow.sources[call] = source
            else:
                self._add_view(call, source)

    def _constrain(self, source: Source, site: Site) -> None:
        """What an annotation says of the place where a value is computed."""
        if source.base in self.flow.open_tuples:
            assert isinstance(source.base, Tuple)
            for index in range(len(source.base.fields)):
                self._constrain(self.flow.field(source, index), site)
        elif not is_everywhere(source.base):
            self.flow.domains.constrain(self.flow.domain_of(source), site)

    def _add_operator(self, call: Call) -> None:
        flow = self.flow
        domain = flow.of[call] = flow.domains.new()
        self._annotate(domain, call)
        if is_shape_operator(call):
            if flow.domains.constrain(domain, Site(self.host, call, self.owner), is_required=False):
                flow.weak.add(domain)
            return
        for arg in call.args:
            if isinstance(arg, Function):
                self.bodies.add(arg, domain)
            else:
                flow.need(flow.sources[arg], domain)

    def _callee(self, op: Expr) -> FunctionDomain | None:
        """What is known of a function that is called; None of loop functions, which run anywhere."""
        if isinstance(op, GlobalVar):
            return self.globals.get(op.name)
        found = self.flow.domain_of(self.flow.sources[op])
        return found if isinstance(found, FunctionDomain) else None

    def _add_function_call(self, call: Call) -> None:
        callee = self._callee(call.op)
        assert callee is not None
        for arg, param in zip(call.args, callee.params, strict=False):
            self.flow.need(self.flow.sources[arg], param)
        self.flow.callees[call] = callee
        self.flow.of[call] = callee.result
        self._annotate(callee.result, call)

    def _add_literal(self, function: Function) -> None:
        declared = self.flow.of.get(function) or self._declared(function)
        if not is_indivisible(function):
            assert isinstance(declared, FunctionDomain)
            self.flow.follow(self.flow.sources[function.body], declared.result, self.owner)
