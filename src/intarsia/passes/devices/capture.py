"""The planned program: a device on every expression, copies where they differ, no annotations left.

A value is copied once to each device where it is needed; the copy is shared by all its users there, and is
evaluated in the innermost scope that encloses them (`ir.scope`). Copies that the program has are used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
    TupleType,
    Var,
    post_order,
    with_fields,
    with_module_fields,
)
from intarsia.op.device_call import device_copy, is_device_copy, is_shape_operator, placement_of
from intarsia.op.known_value import record_known_value
from intarsia.passes.devices.device_choice import DeviceChoice
from intarsia.passes.devices.device_domains import Domain, FieldsDomain, FunctionDomain, main_leaf
from intarsia.passes.devices.device_flow import Path, Source, is_everywhere, type_at
from intarsia.passes.devices.indivisible_functions import insides, is_indivisible, refined, settled
from intarsia.target import UNCONSTRAINED, CompilationConfig, Target, VirtualDevice


def captured(mod: IRModule, choice: DeviceChoice, config: CompilationConfig) -> IRModule:
    """The program as planned; the same objects where nothing changes.

    Args:
        mod: The program.
        choice: The devices of its values.
        config: The targets of the devices.

    Raises:
        UsageError: There is no target for a device.
    """
    capture = _Capture(choice, config)
    functions = {
        var: capture.function(function) if isinstance(function, Function) else function
        for var, function in mod.functions.items()
    }
    return with_module_fields(mod, functions=functions)


@dataclass(slots=True)
class _Capture:
    choice: DeviceChoice
    config: CompilationConfig
    done: dict[Expr, Expr] = field(default_factory=dict)
    targets: dict[Expr, Target] = field(default_factory=dict)
    fields: dict[tuple[Expr, Path], Expr] = field(default_factory=dict)
    written: dict[tuple[Expr, Path, VirtualDevice], Call] = field(default_factory=dict)
    held: dict[tuple[Expr, Path, VirtualDevice], Expr] = field(default_factory=dict)
    complete: dict[tuple[VirtualDevice, VirtualDevice], VirtualDevice] = field(default_factory=dict)

    def function(self, function: Function) -> Function:
        """A global function as planned."""
        if is_indivisible(function):
            return self._indivisible(function)
        order = list(post_order(function, stop=insides(function)))
        for expr in order:
            self._read(expr)
        for expr in order:
            new = self._planned(expr)
            if isinstance(new, Call) and new is not expr:
                record_known_value(new)
            self.done[expr] = new
        after = self.done[function]
        assert isinstance(after, Function)
        return after

    def _read(self, expr: Expr) -> None:
        """Remember the targets that annotations name, and the copies that are there."""
        if (placement := placement_of(expr)) is not None:
            source = self._source(expr)
            if placement.constrain_body and placement.device.target is not None:
                self.targets.setdefault(source.base, placement.device.target)
        elif is_device_copy(expr) and expr in self.choice.flow.views:
            assert isinstance(expr, Call)
            source, there = self.choice.origin(self.choice.flow.views[expr]), self.choice.flow.of[expr]
            if isinstance(there, int):
                self.written.setdefault((source.base, source.path, self.choice.device(there)), expr)

    def _source(self, expr: Expr) -> Source:
        return self.choice.flow.sources[expr]

    def _planned(self, expr: Expr) -> Expr:
        flow = self.choice.flow
        if expr in flow.views:
            return self._delivered(flow.views[expr], flow.of[expr])
        match expr:
            case Op() | GlobalVar() | Constant():
                return expr
            case Var():
                return with_fields(expr, virtual_device=self._own(expr, flow.of[expr]))
            case Function():
                return self._indivisible(expr) if is_indivisible(expr) else self._literal(expr)
            case Let():
                return self._let(expr)
            case If():
                return self._if(expr)
            case Tuple():
                return self._tuple(expr) if expr in flow.of else expr
            case TupleGetItem():
                return self._item(expr)
            case Call():
                return self._call(expr)
            case _:
                assert_never(expr)

    def _indivisible(self, function: Function) -> Function:
        domain = self.choice.flow.of[function]
        assert isinstance(domain, FunctionDomain)
        assert isinstance(domain.result, int)
        return settled(function, self._with_target(self.choice.device(domain.result), UNCONSTRAINED))

    def _literal(self, function: Function) -> Function:
        domain = self.choice.flow.of[function]
        assert isinstance(domain, FunctionDomain)
        return with_fields(
            function,
            params=tuple(self.done[param] for param in function.params),
            body=self._deliver(function.body, domain.result),
            virtual_device=self._own(function, domain.result),
        )

    def _let(self, let: Let) -> Let:
        domain = self.choice.flow.of[let]
        return with_fields(
            let,
            var=self.done[let.var],
            value=self._deliver(let.value, self.choice.flow.of[let.var]),
            body=self._deliver(let.body, domain),
            virtual_device=self._own(let, domain),
        )

    def _if(self, expr: If) -> If:
        domain = self.choice.flow.of[expr]
        return with_fields(
            expr,
            cond=self._deliver(expr.cond, main_leaf(domain)),
            true_branch=self._deliver(expr.true_branch, domain),
            false_branch=self._deliver(expr.false_branch, domain),
            virtual_device=self._own(expr, domain),
        )

    def _tuple(self, expr: Tuple) -> Tuple:
        domain = self.choice.flow.of[expr]
        return with_fields(
            expr,
            fields=tuple(
                self._deliver(item, domain.fields[index] if isinstance(domain, FieldsDomain) else domain)
                for index, item in enumerate(expr.fields)
            ),
            virtual_device=self._own(expr, domain),
        )

    def _item(self, expr: TupleGetItem) -> Expr:
        """A field of a tuple that is computed; those of other tuples are seen through."""
        source = self._source(expr)
        whole = self._source(expr.tuple_value)
        if whole.base is source.base and len(source.path) == len(whole.path) + 1:
            key = source.base, source.path
            if key not in self.fields:
                device = self._own(expr, self.choice.flow.domain_of(source))
                self.fields[key] = with_fields(
                    expr, tuple_value=self._value(whole.base, whole.path), virtual_device=device
                )
        return expr

    def _call(self, call: Call) -> Call:
        if call not in self.choice.flow.of:
            return call  # an annotation, which is seen through
        domain = self.choice.flow.of[call]
        callee = self.choice.flow.callees.get(call)
        if callee is not None:
            pairs = zip(call.args, callee.params, strict=False)
            args = tuple(self._deliver(arg, param) for arg, param in pairs)
        elif is_shape_operator(call):
            args = tuple(self._anywhere(arg, domain) for arg in call.args)
        else:
            args = tuple(
                self.done[arg] if isinstance(arg, Function) else self._deliver(arg, domain)
                for arg in call.args
            )
        function = call.op if isinstance(call.op, (Op, GlobalVar)) else self._anywhere(call.op, domain)
        return with_fields(call, op=function, args=args, virtual_device=self._own(call, domain))

    def _anywhere(self, expr: Expr, domain: Domain) -> Expr:
        """A value where it is; what is everywhere, in a place."""
        source = self._source(expr)
        if is_everywhere(source.base) or source.base in self.choice.flow.open_tuples:
            return self._delivered(source, domain)
        return self._value(source.base, source.path)

    def _deliver(self, expr: Expr, there: Domain) -> Expr:
        """The value of an expression of the program, where it is needed."""
        return self._delivered(self._source(expr), there)

    def _delivered(self, source: Source, there: Domain) -> Expr:
        source, flow = self.choice.origin(source), self.choice.flow
        base = source.base
        if base in flow.open_tuples and not source.path:
            return self._tuple_in(base, there)
        if is_everywhere(base):
            return self._constant_on(base, self._device(there))
        here = flow.domain_of(source)
        if isinstance(here, FieldsDomain) and not self.choice.is_there(here, there):
            return self._fields_in(source, there)
        if isinstance(here, FunctionDomain) or self.choice.is_there(here, there):
            return self._value(base, source.path)
        return self._copied(source, there)

    def _tuple_in(self, base: Expr, there: Domain) -> Expr:
        """A tuple that is nowhere, put together where it is needed."""
        assert isinstance(base, Tuple)
        device = self._device(there)
        key = base, (), device
        if key not in self.held:
            places = there.fields if isinstance(there, FieldsDomain) else (there,) * len(base.fields)
            fields = tuple(map(self._deliver, base.fields, places))
            self.held[key] = with_fields(
                base, fields=fields, virtual_device=self._with_target(device, base.virtual_device)
            )
        return self.held[key]

    def _constant_on(self, base: Expr, device: VirtualDevice) -> Expr:
        """What is everywhere, as an expression of each device where it is used; arrays are shared."""
        key = base, (), device
        if key not in self.held:
            self.held[key] = with_fields(base, virtual_device=self._with_target(device, base.virtual_device))
        return self.held[key]

    def _copied(self, source: Source, there: Domain) -> Expr:
        """The one copy of a value on a device; of a tuple, field by field."""
        device = self._device(there)
        key = source.base, source.path, device
        if key in self.held:
            return self.held[key]
        type_ = type_at(source.base.checked_type, source.path)
        if isinstance(type_, TupleType):
            self.held[key] = self._fields_in(source, there)
            return self.held[key]
        value = self._value(source.base, source.path)
        if key in self.written:
            copy = self.written[key]
            own = self._with_target(device, copy.virtual_device)
            self.held[key] = with_fields(copy, args=(value,), virtual_device=own)
        else:
            self.held[key] = device_copy(value, self._with_target(device, UNCONSTRAINED))
        return self.held[key]

    def _fields_in(self, source: Source, there: Domain) -> Expr:
        type_ = type_at(source.base.checked_type, source.path)
        assert isinstance(type_, TupleType)
        items = (Source(source.base, (*source.path, index)) for index in range(len(type_.fields)))
        places = there.fields if isinstance(there, FieldsDomain) else (there,) * len(type_.fields)
        device = self._with_target(self._device(there), UNCONSTRAINED)
        return Tuple(tuple(map(self._delivered, items, places)), virtual_device=device, span=source.base.span)

    def _value(self, base: Expr, path: Path) -> Expr:
        """What is computed, or a field of it."""
        if not path:
            return self.done[base]
        if (base, path) not in self.fields:
            whole = self._value(base, path[:-1])
            device = self._own(base, self.choice.flow.domain_of(Source(base, path)))
            self.fields[base, path] = TupleGetItem(whole, path[-1], virtual_device=device, span=whole.span)
        return self.fields[base, path]

    def _device(self, domain: Domain) -> VirtualDevice:
        return self.choice.device(main_leaf(domain))

    def _own(self, expr: Expr, domain: Domain) -> VirtualDevice:
        """The virtual device of an expression, with the target that it names itself, or an annotation."""
        device = expr.virtual_device
        if device.target is None and expr in self.targets:
            device = VirtualDevice(None, None, self.targets[expr], device.memory_scope)
        return self._with_target(self._device(domain), device)

    def _with_target(self, device: VirtualDevice, annotated: VirtualDevice) -> VirtualDevice:
        key = device, annotated
        if key not in self.complete:
            self.complete[key] = refined(self.config.canonical_virtual_device(device), annotated)
        return self.complete[key]
