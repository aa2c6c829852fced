"""What each pass changed."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff

from intarsia.ir import IRModule
from intarsia.transform.instrument.pass_instrument import PassInstrument
from intarsia.transform.pass_info import PassInfo


@dataclass(frozen=True, slots=True)
class PassChange:
    """What a pass made of a program. A sequence is listed too, after the passes in it.

    Attributes:
        name: The pass.
        before: Program that the pass was given.
        after: Program that the pass returned.
        is_innermost: Whether no other pass ran inside it.
    """

    name: str
    before: IRModule
    after: IRModule
    is_innermost: bool

    @property
    def is_changed(self) -> bool:
        """Whether it returned another module."""
        return self.after is not self.before

    def diff(self, context: int = 3) -> str:
        """The change as a unified diff of program texts, "" if there is none; rendered on demand.

        Args:
            context: Unchanged lines around a changed one.
        """
        if not self.is_changed:
            return ""
        texts = (str(self.before).splitlines(), str(self.after).splitlines())
        lines = unified_diff(*texts, f"before {self.name}", f"after {self.name}", lineterm="", n=context)
        return "\n".join(lines)


class ChangeTracking(PassInstrument):
    """Keeps what every pass was given and returned; a program is shared between the entries, not copied.

    Attributes:
        changes: One entry a run, in the order in which the passes returned.
    """

    def __init__(self) -> None:
        self.changes: list[PassChange] = []
        self._open: list[tuple[IRModule, int, str]] = []

    def enter_pass_ctx(self) -> None:
        """Start anew."""
        self.changes, self._open = [], []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Remember what the pass is given."""
        self._open.append((mod, len(self.changes), info.name))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Remember what it returned."""
        while self._open[-1][2] != info.name:  # passes inside that raised, and were caught
            self._open.pop()
        before, earlier, _ = self._open.pop()
        self.changes.append(PassChange(info.name, before, mod, len(self.changes) == earlier))

    def __str__(self) -> str:
        """The diffs of the passes that changed something; the others by name."""
        return "\n".join(item.diff() or f"# {item.name}: unchanged" for item in self.changes)
