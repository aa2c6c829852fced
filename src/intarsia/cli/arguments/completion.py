"""Shell completion of names."""

from __future__ import annotations

import os

from intarsia.frontend.zoo_name import ZOO_PREFIX

AFTER_PREFIX = "_INTARSIA_AFTER_ZOO_PREFIX"
"""Environment variable that is set if the shell completes only the text after the prefix (`bash_words`)."""


def complete_zoo(incomplete: str) -> list[tuple[str, str]]:
    """Complete a zoo model, with descriptions."""
    from intarsia.frontend.zoo import zoo

    return [(model.name, model.description) for model in zoo() if model.name.startswith(incomplete)]


def complete_model(incomplete: str) -> list[tuple[str, str]]:
    """Complete `zoo:NAME` after its prefix; before, return nothing, so that the shell completes files."""
    if AFTER_PREFIX in os.environ:
        return complete_zoo(incomplete)
    if not incomplete.startswith(ZOO_PREFIX):
        return []
    models = complete_zoo(incomplete.removeprefix(ZOO_PREFIX))
    return [(ZOO_PREFIX + name, description) for name, description in models]


def complete_toolchain(incomplete: str) -> list[str]:
    """Complete a registered toolchain, without loading any."""
    from intarsia.runtime.kernel import TOOLCHAINS

    return [name for name in TOOLCHAINS if name.startswith(incomplete)]


def complete_pass_text(incomplete: str) -> list[str]:
    """Complete the last word of a text of passes: a pass, pipeline or option, or a value of an option."""
    from intarsia.transform.pass_syntax.suggestion import suggest_passes

    return suggest_passes(incomplete)


def complete_pipeline(incomplete: str) -> list[str]:
    """Complete the name of a pipeline."""
    from intarsia.transform import pipeline_names

    return [name for name in pipeline_names() if name.startswith(incomplete)]


def complete_pass_or_pipeline(incomplete: str) -> list[str]:
    """Complete the name of a pipeline or a pass."""
    from intarsia.transform import pass_names

    return [*complete_pipeline(incomplete), *(name for name in pass_names() if name.startswith(incomplete))]
