"""How large candidates may be, and how many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from intarsia.collage.sub_graph import SubGraphConfig
from intarsia.support.callbacks import silent


@dataclass(frozen=True, slots=True)
class RuleLimits:
    """Limits of the typical rules.

    Attributes:
        shape: Limits of a joined candidate.
        max_joined: The largest number of candidates that are joined for a spec; 0 for any.
        on_note: Called with a sentence for people when a limit is reached.
    """

    shape: SubGraphConfig = SubGraphConfig(max_exits=1, max_depth=8)  # noqa: RUF009 - frozen
    max_joined: int = 5_000
    on_note: Callable[[str], None] = field(default=silent, compare=False, repr=False)
