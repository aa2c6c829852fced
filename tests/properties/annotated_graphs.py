"""Random small graphs with device annotations, and the fewest copies they need, by trying all placements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

import numpy as np
from hypothesis import strategies as st

from intarsia.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    post_order,
    with_fields,
)
from intarsia.op import call, on_device
from intarsia.op.device_call import DeviceCallPlacement, placement_of
from intarsia.target import UNCONSTRAINED, DeviceType, VirtualDevice

DEVICES = (
    VirtualDevice(DeviceType.CPU, 0),
    VirtualDevice(DeviceType.MOCK, 0),
    VirtualDevice(DeviceType.MOCK, 1),
)
"""The first is the default."""

F32 = TensorType.of(np.zeros((2, 3), np.float32))
BOOL = TensorType.of(np.zeros((), np.bool_))
PAIR = TupleType((F32, F32))


@dataclass(frozen=True)
class Tensor:
    """A tensor of the graph.

    Attributes:
        number: Number of the tensor.
        place: Number of the place where it is computed.
        is_border: Whether an annotation stands between that leaves its users open.
    """

    number: int
    place: int
    is_border: bool = False


Known: TypeAlias = Tensor | tuple[Tensor, ...]


@dataclass
class AnnotatedGraph:
    """A program, and what its annotations say; read off the program without the planner.

    Attributes:
        mod: The program: @main, and maybe a function @f that it calls.
        fixed: For each place, the devices that annotations name: one fixes it, two are a contradiction.
        needs: Tensors and the places where they are needed, each with whether a border stands between.
        merged: For each place the one that stands for it: names, lets and results are where their values are.
        is_held: Whether an annotation gives a value a second place.
    """

    mod: IRModule
    fixed: list[set[VirtualDevice]] = field(default_factory=list)
    needs: list[tuple[Tensor, int, bool]] = field(default_factory=list)
    merged: list[int] = field(default_factory=list)
    is_held: bool = False
    _tensors: int = 0
    _known: dict[Expr, Known] = field(default_factory=dict)
    _aliases: list[tuple[Known, int]] = field(default_factory=list)
    _results: dict[str, int] = field(default_factory=dict)
    _params: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for var, function in self.mod.graph_functions.items():
            for param in function.params:
                self._known[param] = self._computed(param.virtual_device)
            self._params[var.name] = [self._only(self._known[param]).place for param in function.params]
            self._results[var.name] = self._place(UNCONSTRAINED)
            for expr in post_order(function.body):
                if expr not in self._known:
                    self._read(expr)
            self._pass_on(self._known[function.body], self._results[var.name])
        for known, place in self._aliases:
            self._merge([*(self._find(tensor.place) for tensor in _tensors(known)), self._find(place)])

    def _read(self, expr: Expr) -> None:
        placement = placement_of(expr)
        match expr:
            case Call() if placement is not None:
                self._known[expr] = self._annotated(placement, self._only(self._known[expr.args[0]]))
            case Call(op=GlobalVar(name=name), args=args):
                for arg, param in zip(args, self._params[name], strict=True):
                    self._need(self._only(self._known[arg]), param)
                self._known[expr] = self._tensor(self._results[name])
            case Call(args=args):
                tensor = self._computed(expr.virtual_device)
                for arg in args:
                    self._need(self._only(self._known[arg]), tensor.place)
                self._known[expr] = tensor
            case Tuple(fields=fields):
                self._known[expr] = tuple(self._only(self._known[item]) for item in fields)
            case TupleGetItem(tuple_value=whole, index=index):
                self._known[expr] = _tensors(self._known[whole])[index]
            case If() | Var() | Let():
                self._read_scope(expr)
            case _:
                pass  # an operator, a global function

    def _read_scope(self, expr: If | Var | Let) -> None:
        match expr:
            case If(cond=cond, true_branch=first, false_branch=second):
                place = self._place(UNCONSTRAINED)
                for tensor in (*_tensors(self._known[first]), *_tensors(self._known[second])):
                    self.needs.append((tensor, place, False))
                self._need(self._only(self._known[cond]), place)
                self._known[expr] = self._held_at(place, self._known[first])
            case Var(checked_type=type_):  # the name of a let
                tensor = self._computed(UNCONSTRAINED)
                is_pair = isinstance(type_, TupleType)
                self._known[expr] = (tensor, self._tensor(tensor.place)) if is_pair else tensor
            case Let(var=var, value=value, body=body):
                self._pass_on(self._known[value], _tensors(self._known[var])[0].place)
                place = self._place(UNCONSTRAINED)
                self._pass_on(self._known[body], place)
                self._known[expr] = self._held_at(place, self._known[body])

    def _only(self, known: Known) -> Tensor:
        assert isinstance(known, Tensor)
        return known

    def _place(self, device: VirtualDevice) -> int:
        self.fixed.append({device} - {UNCONSTRAINED})
        self.merged.append(len(self.merged))
        return len(self.fixed) - 1

    def _tensor(self, place: int) -> Tensor:
        self._tensors += 1
        return Tensor(self._tensors, place)

    def _computed(self, device: VirtualDevice) -> Tensor:
        return self._tensor(self._place(device))

    def _held_at(self, place: int, like: Known) -> Known:
        if isinstance(like, Tensor):
            return self._tensor(place)
        return tuple(self._tensor(place) for _ in like)

    def _need(self, tensor: Tensor, place: int) -> None:
        self.needs.append((tensor, place, tensor.is_border))

    def _pass_on(self, known: Known, place: int) -> None:
        for tensor in _tensors(known):
            self.needs.append((tensor, place, False))
        self._aliases.append((known, place))

    def _annotated(self, placement: DeviceCallPlacement, tensor: Tensor) -> Tensor:
        if placement.constrain_body:
            self.fixed[tensor.place].add(placement.device)
            is_border = tensor.is_border if placement.constrain_result else True
            return Tensor(tensor.number, tensor.place, is_border)
        if placement.constrain_result:
            self.is_held = True
            held = self._computed(placement.device)
            self._need(tensor, held.place)
            return held
        return Tensor(tensor.number, tensor.place, is_border=True)

    def _find(self, place: int) -> int:
        while self.merged[place] != place:
            place = self.merged[place]
        return place

    def _merge(self, places: Sequence[int]) -> None:
        devices = set().union(*(self.fixed[place] for place in places))
        if len(devices) <= 1:
            first = places[0]
            for place in places[1:]:
                self.merged[place] = first
            self.merged[first] = first
            self.fixed[first] = devices

    @property
    def is_contradictory(self) -> bool:
        """Whether annotations put a value on two devices."""
        return any(len(devices) > 1 for devices in self.fixed)

    def fewest_copies(self) -> int:
        """Over all placements that keep to the annotations, and to the default for results."""
        called = {expr.name for expr in post_order(self.mod["main"]) if isinstance(expr, GlobalVar)}
        fixed = {place: set(self.fixed[place]) for place in self._roots()}
        for name, place in self._results.items():
            result = self._find(place)
            if name not in called and result not in self._reached():
                fixed[result] = {DEVICES[0]}
        options = [tuple(devices) or DEVICES for devices in fixed.values()]
        return min(self._copies(dict(zip(fixed, choice, strict=True))) for choice in product(*options))

    def _roots(self) -> Iterator[int]:
        return (place for place in range(len(self.merged)) if self._find(place) == place)

    def _reached(self) -> set[int]:
        """Places that annotations speak of, and those that get values from them with no border between."""
        reached = {place for place in self._roots() if self.fixed[place]}
        while True:
            more = {
                self._find(place)
                for tensor, place, is_border in self.needs
                if not is_border and self._find(tensor.place) in reached
            }
            if more <= reached:
                return reached
            reached |= more

    def _copies(self, placement: dict[int, VirtualDevice]) -> int:
        needed = {
            (tensor.number, placement[self._find(place)])
            for tensor, place, _ in self.needs
            if placement[self._find(place)] != placement[self._find(tensor.place)]
        }
        return len(needed)


def _tensors(known: Known) -> tuple[Tensor, ...]:
    return (known,) if isinstance(known, Tensor) else known


@st.composite
def annotated_graphs(
    draw: st.DrawFn, *, devices: int = 2, steps: int = 9, joins: bool = False
) -> AnnotatedGraph:
    """A graph of up to `steps` operators and annotations on so many devices.

    Args:
        draw: Function of hypothesis.
        devices: Number of devices.
        steps: Largest number of operators and annotations.
        joins: Whether there are also If, let, tuples and calls of a function.
    """
    device = st.sampled_from(DEVICES[:devices])
    maybe_device = st.sampled_from([UNCONSTRAINED] * 3 * devices + list(DEVICES[:devices]))
    params = tuple(
        Var(f"p{number}", checked_type=F32, virtual_device=draw(maybe_device))
        for number in range(draw(st.integers(1, 3)))
    )
    condition = Var("c", checked_type=BOOL, virtual_device=draw(maybe_device))
    values: list[Expr] = list(params)
    value = st.integers(0, 5).map(lambda back: values[-1 - back % len(values)])

    names = ["Neg", "Relu", "Add", "Mul", "on_device"]
    names += ["If", "If of tuples", "let", "let of a tuple", "f"] if joins else []
    for _ in range(draw(st.integers(1, steps))):
        name = draw(st.sampled_from(names))
        made: Expr
        if name == "on_device":
            annotated, there = draw(value), draw(device)
            made = on_device(
                annotated, there, constrain_body=draw(st.booleans()), constrain_result=draw(st.booleans())
            )
        elif name in ("Neg", "Relu", "Add", "Mul"):
            args = [draw(value) for _ in range(1 if name in ("Neg", "Relu") else 2)]
            made = with_fields(call(name, *args), virtual_device=draw(maybe_device))
        else:
            made = _joined(draw, name, value, condition)
        values.append(made)
    body: Expr = _pair(draw, value) if joins and draw(st.booleans()) else values[-1]
    main = Function((*params, condition) if joins else params, body)
    if not joins:
        return AnnotatedGraph(IRModule.from_expr(main))
    called = _called_function(draw(maybe_device), draw(maybe_device))
    return AnnotatedGraph(IRModule({GlobalVar("f"): called, GlobalVar("main"): main}))


def _pair(draw: st.DrawFn, value: st.SearchStrategy[Expr]) -> Tuple:
    return Tuple((draw(value), draw(value)), checked_type=PAIR)


def _joined(draw: st.DrawFn, name: str, value: st.SearchStrategy[Expr], condition: Var) -> Expr:
    """A value that is passed on or joined with others in one place."""
    match name:
        case "If":
            return If(condition, draw(value), draw(value), checked_type=F32)
        case "If of tuples":
            both = If(condition, _pair(draw, value), _pair(draw, value), checked_type=PAIR)
            return call("Add", item(both, 0), item(both, 1))
        case "let":
            var = Var("v", checked_type=F32)
            return Let(var, draw(value), call("Mul", var, draw(value)), checked_type=F32)
        case "let of a tuple":
            var = Var("t", checked_type=PAIR)
            product = call("Mul", item(var, 0), item(var, 1))
            return Let(var, _pair(draw, value), product, checked_type=F32)
        case _:
            return Call(GlobalVar("f"), (draw(value), draw(value)), checked_type=F32)


def item(whole: Expr, index: int) -> TupleGetItem:
    """A field of a pair."""
    return TupleGetItem(whole, index, checked_type=F32)


def _called_function(param: VirtualDevice, operator: VirtualDevice) -> Function:
    """A function of two tensors, with devices on its first parameter and its operator."""
    first, second = Var("a", checked_type=F32, virtual_device=param), Var("b", checked_type=F32)
    return Function((first, second), with_fields(call("Add", first, second), virtual_device=operator))
