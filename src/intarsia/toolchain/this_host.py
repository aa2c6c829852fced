"""This machine with the toolchains that work on it: the fingerprint of measurements and artifacts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from intarsia.runtime.cuda.gpu_facts import gpus_here
from intarsia.target import Host
from intarsia.target.cpu import usable_cores
from intarsia.target.machine_file import machine_model
from intarsia.toolchain.native.libraries import library_versions
from intarsia.toolchain.protocol import Available
from intarsia.toolchain.registered import installed_toolchains, toolchain


def this_host() -> Host:
    """The fingerprint of the machine, its toolchains' and libraries' versions, and thread policies.

    All but the usable cores and the machine model is read once: a process may be moved to other cores while
    it runs, and calibrate its machine.
    """
    gpus = tuple(map(str, gpus_here().facts))
    return replace(_first_seen(), cores=usable_cores(Path("/")), machine=str(machine_model()), gpus=gpus)


@cache
def _first_seen() -> Host:
    working = [
        (status.name, status.availability.version)
        for status in installed_toolchains()
        if isinstance(status.availability, Available)
    ]
    policies = (toolchain(name).thread_policy for name, _ in working)
    return Host.detect(toolchains=[*working, *library_versions()], thread_policy="; ".join(policies))
