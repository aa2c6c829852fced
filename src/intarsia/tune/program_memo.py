"""What was made of programs, found again: passes in turns begin at the same programs again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from intarsia.ir import IRModule

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class ProgramMemo:
    """Keeps what was made of programs, by the identity of the program.

    So what is made of it is the same object each time, and what is made of that is found again, too. Programs
    and what was made of them live as long as this does.
    """

    _found: dict[IRModule, dict[Hashable, object]] = field(default_factory=dict, init=False)

    def get_or_make(self, mod: IRModule, what: Hashable, make: Callable[[], T]) -> T:
        """What was made of a program before, or is made now.

        Args:
            mod: The program.
            what: Tells apart what is made of one program; equal for equal results.
            make: Makes it.
        """
        made = self._found.setdefault(mod, {})
        if what not in made:
            made[what] = make()
        return cast("T", made[what])  # what was kept under this key
