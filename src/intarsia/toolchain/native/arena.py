"""How much memory the values between the kernels of a native region may take."""

from __future__ import annotations

from intarsia.support.errors import CompileError
from intarsia.support.machine_memory import machine_memory


def check_arena(size: int) -> None:
    """Refuse a region before its kernels are compiled if its arena cannot fit.

    Args:
        size: Bytes of the arena.

    Raises:
        CompileError: This machine has less memory.
    """
    if size > machine_memory():
        raise too_large_arena(size)


def too_large_arena(size: int) -> CompileError:
    """The error for an arena of `size` bytes that this machine has no memory for."""
    return CompileError(
        f"native cannot compile this: values between its kernels take {size / 2**20:,.0f} MiB, "
        "which this machine does not give",
        help="close other programs, or fix smaller input shapes",
    )
