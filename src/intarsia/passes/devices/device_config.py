"""The targets that planning distinguishes: those it is given, or those in the program's annotations."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import IRModule, post_order
from intarsia.target import CompilationConfig, DeviceType, Target


def device_config(mod: IRModule, targets: Sequence[str], fallback_device: str) -> CompilationConfig:
    """The configuration that a program is planned for.

    Args:
        mod: The program.
        targets: Texts of targets; if there are none, the plain target of the cpu, and of every other device
            kind that the program names.
        fallback_device: Kind of the device of values that nothing constrains; "" to choose it by rule.

    Raises:
        UsageError: Targets that do not go together, or none for the fallback device.
    """
    fallback = DeviceType.of_kind(fallback_device) if fallback_device else None
    if targets:
        return CompilationConfig(tuple(map(Target, targets)), None, fallback)
    named = {
        expr.virtual_device.device_type
        for function in mod.graph_functions.values()
        for expr in post_order(function)
    }
    named |= {DeviceType.CPU, fallback}
    known = (item for item in DeviceType if item in named)  # the cpu is the first
    return CompilationConfig(tuple(Target(item.kind) for item in known), None, fallback)
