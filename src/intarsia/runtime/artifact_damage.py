"""The error for an artifact that is not as it was saved."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from intarsia.support.errors import ArtifactError

_HELP: Final = "copy or download it again, or save it again with Executable.save"


def damaged(path: Path, problem: str) -> ArtifactError:
    """Return the error for a damaged artifact at `path`, with help on how to replace it."""
    return ArtifactError(f"{path} is damaged: {problem}", help=_HELP)
