"""Running kernels that check their indices: the debug mode of native code."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.execution.driver import process_driver
from intarsia.native.execution.thread_pool import Runtime
from intarsia.support.errors import ExecutionError


def run_checked(table: int, name: str, checks: Sequence[str], scratch_bytes: int) -> None:
    """Run one call of a bounds-checked kernel, on this thread.

    Args:
        table: Address of a `CallRecord`.
        name: The kernel's, for the message.
        checks: What each check of the kernel is about, for the message.
        scratch_bytes: Scratch memory that it needs.

    Raises:
        ExecutionError: An index was out of bounds; what the kernel did until then is done.
    """
    driver = process_driver()
    runtime = Runtime(driver, None)
    runtime.reserve(scratch_bytes)
    driver.run_calls(table, 1, runtime.address)
    number, index = runtime.failed_check
    if number:
        about = checks[number - 1] if number <= len(checks) else f"check {number}"
        raise ExecutionError(f"native kernel {name!r}: index {index} is out of bounds: {about}")
