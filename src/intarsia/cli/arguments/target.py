"""Parsing of targets: a toolchain's name, or the full text of a target."""

from __future__ import annotations

from intarsia.support.errors import UsageError
from intarsia.target import Target


def parse_target(text: str, threads: int | None = None) -> Target:
    """Parse a target such as `openvino` or `cpu -toolchain=openvino -threads=2`.

    Args:
        text: Name of a toolchain, or text of a target.
        threads: Number of threads if the text has none.

    Raises:
        UsageError: The text is malformed or names no toolchain.
        MissingToolchainError: Its toolchain is unknown, or not usable here on such devices.
    """
    from intarsia.toolchain import toolchain_for

    target = Target.of_text(text)
    if target.toolchain is None:
        raise UsageError(
            f'the target "{target}" names no toolchain', help='write for example "cpu -toolchain=openvino"'
        )
    toolchain_for(target)
    if threads is not None and target.option("threads") is None:
        return target.with_options(threads=threads)
    return target


def target_text(target: Target) -> str:
    """Return the target's text for tables: toolchain, device, and options (openvino threads=2)."""
    options = (f"{name}={value}" for name, value in target.options)
    return " ".join([target.toolchain_text, *options])
