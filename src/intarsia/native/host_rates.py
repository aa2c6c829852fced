"""Peak and bandwidth of this machine, measured once per process: the bandwidth takes half a second."""

from __future__ import annotations

from functools import cache

from intarsia.native.bandwidth import measured_bandwidth
from intarsia.native.machine.isa import Isa
from intarsia.native.peak import measured_peak


@cache
def host_bandwidth(isa: Isa, threads: int) -> float:
    """Return the bytes per second that a number of threads read from memory (`measured_bandwidth`)."""
    return measured_bandwidth(isa, threads)


@cache
def host_peak(isa: Isa, threads: int) -> float:
    """Return the floating-point operations per second of a number of threads (`measured_peak`)."""
    return measured_peak(isa, threads)
