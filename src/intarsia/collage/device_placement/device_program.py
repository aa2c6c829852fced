"""The operators of a program as tasks, and the program with its operators placed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import TypeAlias

from intarsia.collage.device_placement.device_problem import Assignment, DeviceProblem, DeviceTask, Link
from intarsia.ir import (
    ABSENT,
    Call,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    post_order,
    with_children,
    with_fields,
)
from intarsia.passes.regions.dataflow import Dataflow
from intarsia.passes.regions.toolchain_call import is_candidate
from intarsia.support.errors import UsageError
from intarsia.target import VirtualDevice

Placed: TypeAlias = Var | Call | Tuple


@dataclass(frozen=True, eq=False)
class DeviceProgram:
    """What of @main is placed: its inputs, its calls of operators in the order of evaluation, and its result.

    Attributes:
        mod: The program, typed.
        placed: The inputs, then the calls, then a tuple that is returned, which has one device as well.
        needs: For each of `placed` the numbers of those whose values it reads, through tuples, lets and ifs.
    """

    mod: IRModule
    placed: tuple[Placed, ...]
    needs: tuple[tuple[int, ...], ...] = field(repr=False)

    @classmethod
    def of(cls, mod: IRModule) -> DeviceProgram | None:
        """The program's tasks; None if it calls functions, operators with bodies, or has unknown shapes."""
        main = mod["main"]
        assert isinstance(main, Function)
        sources: dict[Expr, tuple[int, ...]] = {param: (at,) for at, param in enumerate(main.params)}
        placed: list[Placed] = [*main.params]
        needs: list[tuple[int, ...]] = [()] * len(placed)
        dataflow = Dataflow.of(main)
        lets = {expr.var: expr.value for expr in dataflow.nodes if isinstance(expr, Let)}

        def read(expr: Expr) -> tuple[int, ...]:
            return sources.get(lets.get(expr, expr) if isinstance(expr, Var) else expr, ())

        for expr in dataflow.nodes:
            match expr:
                case Call(op=Op()) if is_candidate(expr) and _is_plain(expr):
                    needs.append(_merged(map(read, expr.args)))
                    sources[expr] = (len(placed),)
                    placed.append(expr)
                case Tuple() | TupleGetItem() | If():
                    sources[expr] = _merged(map(read, children(expr)))
                case Let():
                    sources[expr] = read(expr.body)
                case Function() if expr is main:
                    pass
                case _:
                    return None
        if isinstance(main.body, Tuple) and main.body.fields:
            needs.append(sources[main.body])
            placed.append(main.body)
        return cls(mod, tuple(placed), tuple(needs))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls among what is placed."""
        return tuple(each for each in self.placed if isinstance(each, Call))

    @property
    def is_annotated(self) -> bool:
        """Whether a device is given for anything in @main."""
        return any(not expr.virtual_device.is_fully_unconstrained for expr in post_order(self.mod["main"]))

    def problem(
        self,
        devices: Sequence[VirtualDevice],
        seconds: Mapping[Call, Sequence[float]],
        links: tuple[tuple[Link, ...], ...],
    ) -> DeviceProblem:
        """The search problem: only calls cost something, and what is annotated stays where it is.

        Args:
            devices: Devices that operators may run on.
            seconds: Time of each call on each device.
            links: Costs of copies.

        Raises:
            UsageError: A call can run on no device where it may.
        """
        tasks = []
        for expr, needs in zip(self.placed, self.needs, strict=True):
            row = seconds[expr] if isinstance(expr, Call) else (0.0,) * len(devices)
            allowed = tuple(
                one if VirtualDevice.join(expr.virtual_device, device) is not None else inf
                for device, one in zip(devices, row, strict=True)
            )
            if min(allowed) == inf:
                what = expr.name if isinstance(expr, Var) else str(getattr(expr, "op", "the result"))
                raise UsageError(
                    f"{what} ({expr.virtual_device}) can run on none of {', '.join(map(str, devices))}",
                    help="give a device whose toolchain supports it",
                )
            tasks.append(DeviceTask(allowed, needs, nbytes(expr.checked_type)))
        return DeviceProblem(tuple(tasks), links)

    def annotated(self, assignment: Assignment, devices: Sequence[VirtualDevice]) -> IRModule:
        """The program with a device on all that is placed.

        Raises:
            UsageError: There is another number of them.
        """
        if len(assignment) != len(self.placed) or any(
            not 0 <= number < len(devices) for number in assignment
        ):
            raise UsageError(
                f"a placement of {len(assignment)} values on {len(devices)} devices does not fit the program",
                help=f"it has {len(self.placed)} inputs, operators and results",
            )
        where = {expr: devices[number] for expr, number in zip(self.placed, assignment, strict=True)}
        main, done = self.mod["main"], dict[Expr, Expr]()
        for expr in post_order(main):
            new = with_children(expr, tuple(done[child] for child in children(expr)))
            if expr in where:
                joined = VirtualDevice.join(expr.virtual_device, where[expr])
                new = with_fields(new, virtual_device=joined or expr.virtual_device)
            done[expr] = new
        function = done[main]
        assert isinstance(function, Function)
        return self.mod.with_function("main", function)


def nbytes(type_: Type | None) -> int:
    """Bytes of a value of static shape."""
    match type_:
        case TensorType(shape=shape, dtype=dtype):
            return prod(size for size in shape or () if isinstance(size, int)) * dtype.numpy.itemsize
        case TupleType(fields=fields):
            return sum(map(nbytes, fields))
        case _:
            return 0


def _is_plain(call: Call) -> bool:
    values = [arg.checked_type for arg in call.args if arg.checked_type != ABSENT]
    return all(map(_is_static, [*values, *_parts(call.checked_type)]))


def _parts(type_: Type | None) -> tuple[Type | None, ...]:
    return type_.fields if isinstance(type_, TupleType) else (type_,)


def _is_static(type_: Type | None) -> bool:
    shape = type_.shape if isinstance(type_, TensorType) else None
    return shape is not None and all(isinstance(size, int) for size in shape)


def _merged(rows: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sorted({one for row in rows for one in row}))
