"""A memo of results computed from programs: interleaved passes start from the same programs repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from intarsia.ir import IRModule

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class ProgramMemo:
    """Caches objects computed from programs, by the identity of the program.

    A transformed program is the same object each time, so results computed from it are cached as well.
    Programs and results live as long as the memo.
    """

    _results: dict[IRModule, dict[Hashable, object]] = field(default_factory=dict, init=False)

    def get_or_make(self, mod: IRModule, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result for a program and key; compute it if it is not cached.

        Args:
            mod: The program.
            key: Key among the results of one program.
            make: Function that computes the result.
        """
        results = self._results.setdefault(mod, {})
        if key not in results:
            results[key] = make()
        return cast("T", results[key])  # the key determines the type
