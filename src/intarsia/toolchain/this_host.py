"""This machine with the toolchains that work on it: the fingerprint of measurements and artifacts."""

from __future__ import annotations

from functools import cache

from intarsia.target import Host
from intarsia.toolchain.protocol import Available
from intarsia.toolchain.registered import installed_toolchains, toolchain


@cache
def this_host() -> Host:
    """The fingerprint of the machine, its toolchains' versions and their thread policies; asked once."""
    working = [
        (status.name, status.availability.version)
        for status in installed_toolchains()
        if isinstance(status.availability, Available)
    ]
    policies = (toolchain(name).thread_policy for name, _ in working)
    return Host.detect(toolchains=working, thread_policy="; ".join(policies))
