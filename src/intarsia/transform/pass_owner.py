"""Whose pass a pass is: the module that defines it, and the installed package of that module."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import packages_distributions, version
from typing import Final

from intarsia.transform.compiler_pass import Pass
from intarsia.transform.pass_order import passes_inside
from intarsia.transform.pass_registry import has_pass, registered_pass

_OURS: Final = "intarsia"


@dataclass(frozen=True, slots=True)
class PassOwner:
    """The origin of a pass.

    Attributes:
        module: Name of the module that defines it.
        package: Name and version of the installed package of that module, or "".
    """

    module: str
    package: str

    @property
    def is_ours(self) -> bool:
        """Whether the pass belongs to Intarsia."""
        return self.module.partition(".")[0] == _OURS

    def __str__(self) -> str:
        """`module wrong_passes of wrong-passes 1.0`."""
        return f"module {self.module}" + (f" of {self.package}" if self.package else "")


def pass_owner(name: str, sequence: Pass) -> PassOwner | None:
    """Return the owner of a pass of a sequence, or of one that is registered; None if there is none.

    Args:
        name: Name of the pass.
        sequence: A sequence that runs it, or the pass itself.
    """
    given = (sequence, *passes_inside(sequence))
    candidates: list[object] = [item for item in given if item.info.name == name]
    if not candidates and has_pass(name):
        candidates = [registered_pass(name)]
    if not candidates:
        return None
    (item, *_) = candidates
    module = (item if isinstance(item, type) else type(item)).__module__
    packages = packages_distributions().get(module.partition(".")[0], [])
    return PassOwner(module, f"{packages[0]} {version(packages[0])}" if packages else "")
