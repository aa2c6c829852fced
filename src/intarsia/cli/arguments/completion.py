"""Names that the shell completes."""

from __future__ import annotations

import os

ZOO_PREFIX = "zoo:"
AFTER_PREFIX = "_INTARSIA_AFTER_ZOO_PREFIX"
"""Environment variable: set where the shell completes only what follows the prefix (see `bash_words`)."""


def complete_zoo(incomplete: str) -> list[tuple[str, str]]:
    """Models of the zoo whose names begin like this, with their descriptions."""
    from intarsia.frontend.zoo import zoo

    return [(model.name, model.description) for model in zoo() if model.name.startswith(incomplete)]


def complete_model(incomplete: str) -> list[tuple[str, str]]:
    """`zoo:NAME` once that much is typed; before, nothing, so that the shell completes files."""
    if AFTER_PREFIX in os.environ:
        return complete_zoo(incomplete)
    if not incomplete.startswith(ZOO_PREFIX):
        return []
    found = complete_zoo(incomplete.removeprefix(ZOO_PREFIX))
    return [(ZOO_PREFIX + name, description) for name, description in found]


def complete_toolchain(incomplete: str) -> list[str]:
    """Registered toolchains whose names begin like this, without loading any."""
    from intarsia.runtime.kernel import TOOLCHAINS

    return [name for name in TOOLCHAINS if name.startswith(incomplete)]


def complete_pass(incomplete: str) -> list[str]:
    """Passes whose names begin like this."""
    from intarsia.transform import pass_names

    return [name for name in pass_names() if name.startswith(incomplete)]


def complete_pipeline(incomplete: str) -> list[str]:
    """Pipelines whose names begin like this."""
    from intarsia.transform import pipeline_names

    return [name for name in pipeline_names() if name.startswith(incomplete)]


def complete_pass_or_pipeline(incomplete: str) -> list[str]:
    """Pipelines and passes whose names begin like this."""
    return [*complete_pipeline(incomplete), *complete_pass(incomplete)]
