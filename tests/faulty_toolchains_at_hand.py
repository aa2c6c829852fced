"""Registers the faulty toolchains for good: worker processes of tests import this module."""

from __future__ import annotations

from tests.faulty_toolchains import FAULTY

from intarsia.runtime.kernel import TOOLCHAINS

for toolchain in FAULTY:
    if toolchain.name not in TOOLCHAINS:
        TOOLCHAINS.register(toolchain.name, toolchain)
