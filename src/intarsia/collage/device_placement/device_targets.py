"""Which targets may compile for a device."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.support.errors import UsageError
from intarsia.target import Target, VirtualDevice


def device_targets(device: VirtualDevice, toolchains: Sequence[str]) -> tuple[Target, ...]:
    """The device's own target if it names a toolchain; else that target with each of some toolchains.

    Raises:
        UsageError: There is none.
    """
    target = device.target
    if target is not None and target.toolchain is not None:
        return (target,)
    if target is None or not toolchains:
        raise UsageError(
            f"no toolchain compiles for {device}",
            help="give a target with a toolchain, or the toolchains to choose from",
        )
    options = dict(target.options)
    return tuple(Target.for_toolchain(name, target.kind, **options) for name in toolchains)
