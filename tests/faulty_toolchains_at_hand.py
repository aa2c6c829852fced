"""Registers the faulty toolchains for good: worker processes of tests import this module."""

from __future__ import annotations

from tests.faulty_toolchains import FAULTY, FORGETFUL, STUMBLING
from tests.only_in_workers import is_worker

from intarsia.runtime.kernel import TOOLCHAINS

if is_worker():
    for toolchain in (*FAULTY, *FORGETFUL, *STUMBLING):
        TOOLCHAINS.register(toolchain.name, toolchain)
