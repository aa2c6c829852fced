"""Devices by the names of nodes and modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

from intarsia.ir import (
    Call,
    Expr,
    Function,
    IRModule,
    Op,
    children,
    post_order,
    with_children,
    with_fields,
    with_module_fields,
)
from intarsia.passes.devices.indivisible_functions import insides
from intarsia.passes.infer_type import InferType
from intarsia.passes.plan_devices import PlanDevices
from intarsia.support.errors import UsageError
from intarsia.target import VirtualDevice


def place(mod: IRModule, devices: Mapping[str, VirtualDevice | str]) -> IRModule:
    """Put the operators of nodes and modules on devices, and plan the devices of everything else.

    Names are those of the model's nodes and of their modules: node `layer4.0.conv1/Conv` is in the modules
    `layer4`, `layer4.0` and `layer4.0.conv1`. Operators in bodies of others (Loop, Scan) are where those are.

    Args:
        mod: The program.
        devices: Devices, as objects or texts such as "cpu:1", by patterns of names as in a shell
            ("layer4.*"). The first pattern that matches counts.

    Returns:
        The planned program, which `build` takes.

    Raises:
        UsageError: A pattern matches no operator, or a text is no device.
        DeviceConflictError: Annotations that the program has contradict it.
    """
    parsed = {pattern: _device(device) for pattern, device in devices.items()}
    unused = set(parsed)
    functions = {
        var: _annotated(function, parsed, unused) if isinstance(function, Function) else function
        for var, function in mod.functions.items()
    }
    for pattern in devices:
        if pattern in unused:
            raise _no_match(pattern, mod)
    return PlanDevices()(InferType()(with_module_fields(mod, functions=functions)))


def _device(device: VirtualDevice | str) -> VirtualDevice:
    if isinstance(device, VirtualDevice):
        return device
    return VirtualDevice.parse(f"VirtualDevice({device})")


def _annotated(function: Function, devices: Mapping[str, VirtualDevice], unused: set[str]) -> Function:
    """Return a function with the devices of its operators, and take what matches off the unused patterns."""
    inner = _bodies(function) | insides(function)
    done: dict[Expr, Expr] = {}
    for expr in post_order(function):
        done[expr] = with_children(expr, tuple(done[child] for child in children(expr)))
        if expr in inner or not isinstance(expr, Call) or not isinstance(expr.op, Op) or expr.span is None:
            continue
        names = names_of(expr.span.node)
        matching = [pattern for pattern in devices if any(fnmatchcase(name, pattern) for name in names)]
        unused.difference_update(matching)
        if matching:
            done[expr] = with_fields(done[expr], virtual_device=devices[matching[0]])
    after = done[function]
    assert isinstance(after, Function)
    return after


def _bodies(function: Function) -> set[Expr]:
    """Everything in the bodies of operators."""
    calls = (expr for expr in post_order(function) if isinstance(expr, Call) and isinstance(expr.op, Op))
    return set(post_order(*(arg for call in calls for arg in call.args if isinstance(arg, Function))))


def names_of(node: str) -> frozenset[str]:
    """Return the names that a pattern may match: of a node, and of the modules that it belongs to."""
    parts = node.strip("/").split("/")
    steps = ".".join(parts).split(".")
    prefixes = (".".join(steps[:length]) for length in range(1, len(steps) + 1))
    return frozenset((node, *parts, *prefixes))


def _no_match(pattern: str, mod: IRModule) -> UsageError:
    nodes = (node for function in mod.graph_functions.values() for node in _nodes(function))
    names = sorted({name for node in nodes for name in names_of(node)})
    near = get_close_matches(pattern, names, n=3, cutoff=0.4)
    if not names:
        help_line = "the program names no nodes; annotate its expressions (docs/devices.md)"
    else:
        help_line = f"names are such as {', '.join(near or names[:3])}"
    return UsageError(f"no operator has a name or a module that matches {pattern!r}", help=help_line)


def _nodes(function: Function) -> Iterator[str]:
    for expr in post_order(function):
        if isinstance(expr, Call) and expr.span is not None:
            yield expr.span.node
