"""Names that the shell completes."""

from __future__ import annotations

ZOO_PREFIX = "zoo:"


def complete_zoo(incomplete: str) -> list[tuple[str, str]]:
    """Models of the zoo whose names begin like this, with their descriptions."""
    from intarsia.frontend.zoo import zoo

    return [(model.name, model.description) for model in zoo() if model.name.startswith(incomplete)]


def complete_model(incomplete: str) -> list[tuple[str, str]]:
    """`zoo:NAME` once that much is typed; before, nothing, so that the shell completes files."""
    if not incomplete.startswith(ZOO_PREFIX):
        return []
    found = complete_zoo(incomplete.removeprefix(ZOO_PREFIX))
    return [(ZOO_PREFIX + name, description) for name, description in found]


def complete_toolchain(incomplete: str) -> list[str]:
    """Registered toolchains whose names begin like this, without loading any."""
    from intarsia.runtime.kernel import TOOLCHAINS

    return [name for name in TOOLCHAINS if name.startswith(incomplete)]
