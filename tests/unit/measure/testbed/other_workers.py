"""Preloaded by workers that are to be unlike this machine; how, says INTARSIA_TEST_UNLIKE."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

UNLIKE = "INTARSIA_TEST_UNLIKE"


class _NoIntarsia(MetaPathFinder):
    """Makes Intarsia look as if it were not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] == "intarsia":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


match os.environ.get(UNLIKE):
    case "another machine":
        from dataclasses import replace

        from intarsia.toolchain import this_host as module

        _there = replace(module.this_host(), cores=777)
        module.this_host = lambda: _there
    case "another version":
        from intarsia.support import version

        version.VERSION = "0.0.7"
    case "no Intarsia":
        sys.meta_path.insert(0, _NoIntarsia())
