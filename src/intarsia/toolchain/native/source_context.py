"""The context of the passes that compile a source."""

from __future__ import annotations

from intarsia.runtime.kernel import KernelSource
from intarsia.transform import PassContext, PassSettings


def source_context(source: KernelSource) -> PassContext:
    """Return the context for the passes on a source: its settings, with this thread's instruments.

    The settings are those that the source was made under, so that a kernel that is loaded on another machine
    is compiled alike.

    Raises:
        UsageError: An option of the settings is not registered in this process.
    """
    return PassSettings(source.pass_settings).context(PassContext.current().instruments)
