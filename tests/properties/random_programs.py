"""Random well-formed programs of all kinds of expressions, with types, devices and spans, that can be run.

Every value is a float32 tensor of one shape, made by elementwise operators; conditions are a boolean
parameter or constant. Everything is shared at random: expressions of a branch are used outside of it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from tests.properties.cheap_draws import BOOLEANS, choose, choose_some, integers

from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    Span,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
)
from intarsia.target import UNCONSTRAINED, DeviceType, Target, VirtualDevice

SHAPE = (2, 3)
VALUE = TensorType.of(np.zeros(SHAPE, np.float32))
CONDITION = TensorType.of(np.zeros((), np.bool_))

UNARY = ("Relu", "Neg", "Sigmoid", "Tanh", "Abs")
BINARY = ("Add", "Sub", "Mul", "Max")
NAMES = ("x", "y", "x_1", "input:0", "0", "if", 'say "hi"', "größe", "a.b")
DEVICES = (
    VirtualDevice(DeviceType.CPU),
    VirtualDevice(DeviceType.CPU, 0),
    VirtualDevice.for_target(Target("cpu -threads=2")),
    VirtualDevice(memory_scope="global"),
)
SPANS = (Span("model.onnx", "Conv_0", "Conv"), Span("модель", 'a "quoted" name'), Span("", ""))
NOTES: tuple[int | float | str | bytes | tuple[object, ...], ...] = (
    *(0, -1, 2**70, True, 1.0, -0.0, 1e-30, float("inf"), float("nan"), "", 'a"b\\\n', b'\x00\xff"', b""),
    *((), (1, 2.0), ("a", (b"b",))),
)

PARAM_NAMES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
MODULE_ATTRS = st.dictionaries(st.sampled_from(["name", "if"]), st.sampled_from(["squeezenet", 'q"']))
FUNCTION_ATTRS = st.dictionaries(
    st.sampled_from(["note", "let", "an attribute"]), st.sampled_from(NOTES), max_size=2
)


@st.composite
def programs(
    draw: st.DrawFn, *, compilers: Sequence[str] = ("reference",), annotated: bool = True, steps: int = 10
) -> IRModule:
    """A program with @main and up to two other functions, which call only earlier ones.

    Args:
        draw: Hypothesis' source of choices.
        compilers: Values of the attribute Compiler that some functions carry; empty for none.
        annotated: Whether devices and spans are drawn.
        steps: The largest number of expressions added to a function's outer scope.
    """
    writer = _Writer(draw, tuple(compilers), annotated, steps)
    functions: dict[GlobalVar, Function] = {}
    for name in choose(draw, [(), ("f",), ("f", "other function")]):
        function = writer.function(closed=True)
        functions[GlobalVar(name, checked_type=function.checked_type)] = function
        writer.globals = (*writer.globals, *list(functions)[-1:])
    main = writer.main()
    named = {GlobalVar("main", checked_type=main.checked_type): main, **functions}
    return IRModule(named, Attrs(draw(MODULE_ATTRS)))


@dataclass(slots=True)
class _Values:
    """What can be used at a point of the program."""

    tensors: list[Expr]
    conditions: list[Expr] = field(default_factory=list)

    def inside(self, *variables: Var) -> _Values:
        """The same and some variables, for a scope in which those are bound."""
        return _Values([*self.tensors, *variables], self.conditions)


@dataclass(slots=True)
class _Writer:
    draw: st.DrawFn
    compilers: tuple[str, ...]
    annotated: bool
    steps: int
    depth: int = 0
    globals: tuple[GlobalVar, ...] = ()

    def main(self) -> Function:
        names = self.draw(PARAM_NAMES)
        params = [self.var(name) for name in names]
        values = _Values(list(params))
        if self.draw(BOOLEANS):
            cond = Var("cond", checked_type=CONDITION)
            params.append(cond)
            values.conditions.append(cond)
        self.grow(values)
        fields = choose_some(self.draw, values.tensors, 0, 3)
        body: Expr = Tuple(tuple(fields)) if fields else values.tensors[-1]
        return Function(tuple(params), body, span=self.span())

    def function(self, closed: bool, values: _Values | None = None) -> Function:
        """A function of one or two parameters; a closed one sees nothing else."""
        names = choose_some(self.draw, NAMES, 1, 2)
        params = tuple(map(self.var, names))
        outside = _Values([]) if closed or values is None else values
        inside = outside.inside(*params)
        compiler = choose(self.draw, [None, *self.compilers]) if closed else None
        self.grow(inside, simple=compiler is not None)
        body: Expr = inside.tensors[-1]
        if compiler is None and self.draw(BOOLEANS):
            body = Tuple((body, choose(self.draw, inside.tensors)))
        return Function(
            params, body, self.function_attrs(compiler), virtual_device=self.device(), span=self.span()
        )

    def function_attrs(self, compiler: str | None) -> Attrs:
        if compiler is not None:
            target = f"cpu -toolchain={compiler}"
            return Attrs({"Compiler": compiler, "target": target, "global_symbol": f"{compiler}_0"})
        return Attrs(self.draw(FUNCTION_ATTRS))  # type: ignore[arg-type]  # the inner tuples hold attribute values only

    def grow(self, values: _Values, simple: bool = False) -> None:
        """Add some expressions over what there is."""
        kinds = ["unary", "binary", "constant"]
        if not simple:
            kinds += ["tuple", "global"] if self.globals else ["tuple"]
            kinds += ["if", "let", "call"] if self.depth < 2 else []
        most = self.steps if self.depth == 0 else 3
        self.depth += 1
        for _ in range(self.draw(integers(1, most))):
            kind = choose(self.draw, kinds)
            values.tensors.append(getattr(self, f"add_{kind}")(values))
        self.depth -= 1

    def add_unary(self, values: _Values) -> Expr:
        return self.call(self.op(UNARY), self.pick(values))

    def add_binary(self, values: _Values) -> Expr:
        return self.call(self.op(BINARY), self.pick(values), self.pick(values))

    def add_constant(self, values: _Values) -> Expr:
        data = np.full(SHAPE, self.draw(integers(-2, 2)), np.float32)
        return Constant(data, virtual_device=self.device(), span=self.span())

    def add_tuple(self, values: _Values) -> Expr:
        fields = (self.pick(values), *choose_some(self.draw, values.tensors, 0, 2))
        whole = Tuple(fields, virtual_device=self.device(), span=self.span())
        return self.item(whole, self.draw(integers(0, len(fields) - 1)))

    def add_if(self, values: _Values) -> Expr:
        constant = Constant(np.asarray(self.draw(BOOLEANS)))
        cond = choose(self.draw, [constant, *values.conditions])
        self.grow(values)
        first = values.tensors[-1]
        self.grow(values)
        return If(
            *(cond, first, self.pick(values)),
            checked_type=VALUE,
            virtual_device=self.device(),
            span=self.span(),
        )

    def add_let(self, values: _Values) -> Expr:
        var, value = self.var(choose(self.draw, NAMES)), self.pick(values)
        inside = values.inside(var)
        self.grow(inside)
        return Let(var, value, inside.tensors[-1], virtual_device=self.device(), span=self.span())

    def add_call(self, values: _Values) -> Expr:
        function = self.function(self.draw(BOOLEANS), values)
        first = self.apply(function, function, values)
        return self.call(self.op(BINARY), first, self.apply(function, function, values))

    def add_global(self, values: _Values) -> Expr:
        var = choose(self.draw, self.globals)
        return self.apply(GlobalVar(var.name, checked_type=var.checked_type, span=self.span()), var, values)

    def apply(self, callee: Expr, function: Expr, values: _Values) -> Expr:
        """A call of a function; the last field, if it returns a tuple."""
        own_type = function.checked_type
        assert isinstance(own_type, FuncType)
        params, result = own_type.params, own_type.result
        call = self.call(callee, *(self.pick(values) for _ in params), result=result)
        return self.item(call, len(result.fields) - 1) if isinstance(result, TupleType) else call

    def call(self, callee: Expr, *args: Expr, result: Type | None = VALUE) -> Call:
        return Call(callee, args, checked_type=result, virtual_device=self.device(), span=self.span())

    def item(self, whole: Expr, index: int) -> Expr:
        return TupleGetItem(whole, index, virtual_device=self.device(), span=self.span())

    def op(self, names: Sequence[str]) -> Op:
        return Op(choose(self.draw, names), virtual_device=self.device())

    def var(self, name: str) -> Var:
        return Var(name, checked_type=VALUE, virtual_device=self.device(), span=self.span())

    def pick(self, values: _Values) -> Expr:
        return choose(self.draw, values.tensors)

    def device(self) -> VirtualDevice:
        return choose(self.draw, [UNCONSTRAINED, *DEVICES]) if self.annotated else UNCONSTRAINED

    def span(self) -> Span | None:
        return choose(self.draw, [None, *SPANS]) if self.annotated else None
