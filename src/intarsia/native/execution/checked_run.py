"""Runner of kernels that check their indices: the debug mode of native code."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.execution.driver import process_driver
from intarsia.native.execution.thread_pool import Runtime
from intarsia.support.errors import ExecutionError


def run_checked(table: int, name: str, checks: Sequence[str], scratch_bytes: int) -> None:
    """Run one call of a bounds-checked kernel, on this thread.

    Args:
        table: Address of a `CallRecord`.
        name: Name of the kernel, for the message.
        checks: Description of each check of the kernel, for the message.
        scratch_bytes: Scratch memory that the kernel needs, in bytes.

    Raises:
        ExecutionError: An index was out of bounds; writes of the kernel before that index remain.
    """
    driver = process_driver()
    runtime = Runtime(driver, None)
    runtime.reserve(scratch_bytes)
    driver.run_calls(table, 1, runtime.address)
    number, index = runtime.failed_check
    if number:
        check = checks[number - 1] if number <= len(checks) else f"check {number}"
        raise ExecutionError(f"native kernel {name!r}: index {index} is out of bounds: {check}")
