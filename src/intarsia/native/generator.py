"""The digest that identifies the code generator."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from intarsia.support.digest import digest_text

_NATIVE: Final = Path(__file__).parent


@functools.cache
def generator_digest() -> str:
    """Return a digest of the sources of this package: they change between versions, and kernels with them.

    It takes about 10 ms, once.
    """
    return sources_digest(_NATIVE, _NATIVE.rglob("*.py"))


def sources_digest(folder: Path, files: Iterable[Path]) -> str:
    """Return a digest of source files, with their names below a folder."""
    named = sorted((file.relative_to(folder).as_posix(), file) for file in files)
    return digest_text(text for name, file in named for text in (name, file.read_text("utf-8")))
