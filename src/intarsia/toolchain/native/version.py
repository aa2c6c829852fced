"""The version of the toolchain native: it changes whenever its kernels may."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

from intarsia.native.generator import generator_digest, sources_digest
from intarsia.support.digest import digest_text
from intarsia.support.version import VERSION

_TOOLCHAIN: Final = Path(__file__).parent
_DIGITS: Final = 12
_COMPILER: Final = _TOOLCHAIN.parents[1] / "native" / "te"
"""A folder of the code generator that the wheel intarsia-runtime lacks."""

STORED: Final = "stored_version.txt"
"""Name of the file, beside this one, with the version in a wheel that lacks the sources of the compiler."""


@functools.cache
def native_version() -> str:
    """Intarsia's version and a digest of what makes kernels and saves them, such as "0.1.0+1f3870be274f".

    What was measured of another generator is thereby not taken for this one's. Without the compiler it is the
    version of the sources that the wheel was made of.
    """
    if not _COMPILER.is_dir():
        return (_TOOLCHAIN / STORED).read_text("utf-8").strip()
    toolchain_digest = sources_digest(_TOOLCHAIN, own_sources())
    return f"{VERSION}+{digest_text([generator_digest(), toolchain_digest])[:_DIGITS]}"


def own_sources() -> tuple[Path, ...]:
    """Return the source files of this toolchain, which plan regions and save them."""
    return tuple(_TOOLCHAIN.rglob("*.py"))
