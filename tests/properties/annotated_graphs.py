"""Random small graphs with device annotations, and the fewest copies they need, by trying all placements."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
from hypothesis import strategies as st

from intarsia.ir import Call, Expr, Function, IRModule, TensorType, Var, post_order, with_fields
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


@dataclass
class AnnotatedGraph:
    """A graph of operators, and what its annotations say; read off the program without the planner.

    Attributes:
        mod: The program.
        fixed: For each value, the devices that annotations name: one fixes it, two are a contradiction.
        uses: The values that each value needs, each with whether a border stands between.
        result: The value that is returned.
        is_held: Whether an annotation gives a value a second place.
    """

    mod: IRModule
    fixed: list[set[VirtualDevice]] = field(default_factory=list)
    uses: list[list[tuple[int, bool]]] = field(default_factory=list)
    result: int = -1
    is_held: bool = False

    def __post_init__(self) -> None:
        known: dict[Expr, tuple[int, bool]] = {}
        for expr in post_order(self.mod["main"].body):
            placement = placement_of(expr)
            if isinstance(expr, Call) and placement is not None:
                known[expr] = self._annotated(expr, placement, *known[expr.args[0]])
            elif isinstance(expr, (Var, Call)):
                args = expr.args if isinstance(expr, Call) else ()
                known[expr] = self._value(
                    {expr.virtual_device} - {UNCONSTRAINED}, [known[arg] for arg in args]
                )
        self.result = known[self.mod["main"].body][0]

    def _annotated(
        self, expr: Call, placement: DeviceCallPlacement, value: int, is_border: bool
    ) -> tuple[int, bool]:
        if placement.constrain_body:
            self.fixed[value].add(placement.device)
            return value, is_border if placement.constrain_result else True
        if placement.constrain_result:
            self.is_held = True
            return self._value({placement.device}, [(value, is_border)])
        return value, True

    def _value(self, fixed: set[VirtualDevice], uses: list[tuple[int, bool]]) -> tuple[int, bool]:
        self.fixed.append(fixed)
        self.uses.append(uses)
        return len(self.fixed) - 1, False

    @property
    def is_contradictory(self) -> bool:
        """Whether annotations put a value on two devices."""
        return any(len(devices) > 1 for devices in self.fixed)

    def fewest_copies(self) -> int:
        """Over all placements that keep to the annotations, and to the default for results."""
        fixed = [set(devices) for devices in self.fixed]
        if not fixed[self.result] and not self._is_reached(self.result):
            fixed[self.result] = {DEVICES[0]}
        options = [tuple(devices) or DEVICES for devices in fixed]
        return min(self._copies(placement) for placement in product(*options))

    def _is_reached(self, value: int) -> bool:
        """Whether something annotated gets there without a border."""
        return bool(self.fixed[value]) or any(
            not is_border and self._is_reached(used) for used, is_border in self.uses[value]
        )

    def _copies(self, placement: tuple[VirtualDevice, ...]) -> int:
        needed = {
            (used, placement[user])
            for user, uses in enumerate(self.uses)
            for used, _ in uses
            if placement[user] != placement[used]
        }
        return len(needed)


@st.composite
def annotated_graphs(draw: st.DrawFn, *, devices: int = 2, steps: int = 9) -> AnnotatedGraph:
    """A graph of up to `steps` operators and annotations, on so many devices."""
    device = st.sampled_from(DEVICES[:devices])
    maybe_device = st.sampled_from([UNCONSTRAINED] * 3 * devices + list(DEVICES[:devices]))
    params = tuple(
        Var(f"p{number}", checked_type=F32, virtual_device=draw(maybe_device))
        for number in range(draw(st.integers(1, 3)))
    )
    values: list[Expr] = list(params)
    value = st.integers(0, 5).map(lambda back: values[-1 - back % len(values)])
    for _ in range(draw(st.integers(1, steps))):
        name = draw(st.sampled_from(["Neg", "Relu", "Add", "Mul", "on_device"]))
        made: Expr
        if name == "on_device":
            body, result = draw(st.booleans()), draw(st.booleans())
            made = on_device(draw(value), draw(device), constrain_body=body, constrain_result=result)
        else:
            args = [draw(value) for _ in range(1 if name in ("Neg", "Relu") else 2)]
            made = with_fields(call(name, *args), virtual_device=draw(maybe_device))
        values.append(made)
    return AnnotatedGraph(IRModule.from_expr(Function(params, values[-1])))
