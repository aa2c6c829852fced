"""Which device each expression of a program is on, read off the virtual devices that planning has left.

A program that names one CPU device, or none, has no devices at run time: all is done by the
caller's thread on all cores. Any other must be planned: every call and parameter has a device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from intarsia.build.kernel_table import is_marked, marked_target
from intarsia.build.uses import shown
from intarsia.ir import Call, Expr, Function, FuncType, GlobalVar, IRModule, Op, children, post_order
from intarsia.op.device_call import placement_of
from intarsia.runtime.devices.device import device_class
from intarsia.runtime.devices.device_name import DeviceName
from intarsia.runtime.devices.open_devices import group_sizes
from intarsia.support.errors import UnsupportedModelError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE

_CPU: Final = "cpu"
_GLOBAL: Final = "global"
"""Name of the one memory that each device has."""
_MEMORY_SCOPES: Final = frozenset({"", _GLOBAL})


@dataclass(frozen=True, slots=True)
class DeviceMap:
    """The devices of a program.

    Attributes:
        names: Names as in `ExecutionPlan.devices`; empty for a program without devices at run time.
        threads: Number of threads of each device's targets, None where they set none.
        sizes: Number of cores of each device on this machine, None for devices other than CPUs.
    """

    names: tuple[DeviceName, ...] = ()
    threads: tuple[int | None, ...] = ()
    sizes: tuple[int | None, ...] = ()
    _numbers: dict[DeviceName, int] = field(default_factory=dict, repr=False)

    @property
    def plan_names(self) -> tuple[str, ...]:
        """The names as texts."""
        return tuple(map(str, self.names))

    def number(self, expr: Expr) -> int:
        """The number of the device that an expression is on; 0 where there are none."""
        found = device_name(expr)
        return self._numbers.get(found, 0) if found is not None else 0

    def only_device(self, function: Function) -> int | None:
        """The number of the one device on which all of a function is; None if there are several."""
        if not self.names:
            return 0
        placed: list[Expr] = [*function.params]
        placed += [expr for expr in evaluated(function) if isinstance(expr, Call)]
        found = {self.number(expr) for expr in placed or [function]}
        return found.pop() if len(found) == 1 else None

    def unmarked_target(self, expr: Expr, default: Target) -> Target:
        """The target of unmarked code on the device of an expression.

        The toolchain is the one that the expression's target names; else that of its kind of device; else
        that of `default`. On a group of cores it has as many threads as these, if nothing else is said.
        """
        if not self.names:
            return default
        number, target = self.number(expr), expr.virtual_device.target
        if target is None or target.toolchain is None:
            kind = self.names[number].kind
            toolchain = device_class(kind).default_toolchain or default.toolchain or REFERENCE
            options = dict(default.options) if toolchain == default.toolchain else {}
            options |= {} if target is None else dict(target.options)
            target = Target.for_toolchain(toolchain, kind, **options)
        return self.with_threads(target, number)

    def with_threads(self, target: Target, number: int) -> Target:
        """A target with as many threads as a device has cores, if it says nothing about threads."""
        size = self.sizes[number] if self.names else None
        if size is None or target.option("threads") is not None:
            return target
        return target.with_options(threads=size)


def device_name(expr: Expr) -> DeviceName | None:
    """The device that an expression is on, if its virtual device says which."""
    device = expr.virtual_device
    if device.device_type is None or device.virtual_device_id is None:
        return None
    return DeviceName(device.device_type.kind, device.virtual_device_id)


def evaluated(function: Function) -> Iterator[Expr]:
    """What is evaluated when an unmarked function is called, each once; bodies of operators are left out."""
    seen: set[Expr] = {function}
    stack: list[Expr] = [*function.params, function.body]
    while stack:
        expr = stack.pop()
        if expr in seen:
            continue
        seen.add(expr)
        yield expr
        if isinstance(expr, Function) and is_marked(expr):
            continue
        inner = children(expr)
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            inner = tuple(child for child in inner if not isinstance(child, Function))
        stack.extend(reversed(inner))


def device_map(mod: IRModule) -> DeviceMap:
    """The devices of a program.

    Raises:
        UnsupportedModelError: It names several devices, or one that is not of the CPU, and is not planned; or
            a memory that devices have not.
    """
    _check_memory_scopes(mod)
    functions = {var.name: function for var, function in mod.graph_functions.items()}
    wanted: dict[DeviceName, int] = {}
    unplanned = ""
    for name, function in functions.items():
        for expr in () if is_marked(function) else _placed(function):
            device = device_name(expr)
            if device is not None:
                wanted[device] = max(_threads(expr, functions), wanted.get(device, 0))
            if device is None or placement_of(expr) is not None:
                unplanned = unplanned or f"in @{name}, {shown(expr)}"
    names = tuple(sorted(wanted, key=lambda device: (device.kind, device.number)))
    if not names or (len(names) == 1 and names[0].kind == _CPU):
        return DeviceMap()
    if unplanned:
        raise UnsupportedModelError(
            f"{unplanned} has no planned device, but the program names {', '.join(map(str, names))}",
            help="run PlanDevices before build",
        )
    threads = tuple(wanted[device] or None for device in names)
    sizes = group_sizes([str(device) for device in names], threads)
    return DeviceMap(names, threads, sizes, {device: number for number, device in enumerate(names)})


def _check_memory_scopes(mod: IRModule) -> None:
    """Refuse memory scopes: buffers and kernels of devices are in their one memory."""
    for var, function in mod.graph_functions.items():
        for expr in post_order(function):
            scope = expr.virtual_device.memory_scope
            if scope not in _MEMORY_SCOPES:
                name = device_name(expr) or "its device"
                raise UnsupportedModelError(
                    f"in @{var.name}, {shown(expr)} is in memory scope {scope!r}, but {name} has only the "
                    f'memory "{_GLOBAL}"',
                    help="remove the memory scope from the annotations",
                )


def _placed(function: Function) -> Iterator[Expr]:
    """What must have a device: parameters and calls, but for those of and to functions."""
    params = set(function.params)
    for expr in evaluated(function):
        is_placed = isinstance(expr, Call) or expr in params
        if is_placed and not isinstance(expr.checked_type, FuncType):
            yield expr


def _threads(expr: Expr, functions: Mapping[str, Function]) -> int:
    """Number of threads in the target of an expression, or of the marked function it calls; 0: any."""
    targets = [expr.virtual_device.target]
    callee = expr.op if isinstance(expr, Call) else None
    if isinstance(callee, GlobalVar):
        callee = functions.get(callee.name)
    if isinstance(callee, Function) and is_marked(callee):
        targets.append(marked_target(callee))
    sizes = [target.option("threads") for target in targets if target is not None]
    return max((size for size in sizes if isinstance(size, int)), default=0)
