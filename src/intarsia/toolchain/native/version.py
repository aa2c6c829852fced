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


@functools.cache
def native_version() -> str:
    """Intarsia's version and a digest of what makes kernels and saves them, such as "0.1.0+1f3870be274f".

    What was measured of another generator is thereby not taken for this one's.
    """
    toolchain_digest = sources_digest(_TOOLCHAIN, own_sources())
    return f"{VERSION}+{digest_text([generator_digest(), toolchain_digest])[:_DIGITS]}"


def own_sources() -> tuple[Path, ...]:
    """Return the source files of this toolchain, which plan regions and save them."""
    return tuple(_TOOLCHAIN.glob("*.py"))
