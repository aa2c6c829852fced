"""What each pass changed."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff

from intarsia.ir import IRModule
from intarsia.ir.printer import print_module
from intarsia.transform.instrument.open_runs import OpenRuns
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

        Constants stand in it with the start of their digests instead of numbers: a changed value is a
        changed line, and a further constant does not change the lines of the others.

        Args:
            context: Unchanged lines around a changed one.
        """
        if not self.is_changed:
            return ""
        texts = (_lines(self.before), _lines(self.after))
        lines = unified_diff(*texts, f"before {self.name}", f"after {self.name}", lineterm="", n=context)
        return "\n".join(lines)

    def __str__(self) -> str:
        """The diff; without one, a line with the reason."""
        if not self.is_changed:
            return f"# {self.name}: unchanged"
        return self.diff() or f"# {self.name}: another program with the same text"


class ChangeTracking(PassInstrument):
    """Keeps what every pass was given and returned; a program is shared between the entries, not copied.

    Attributes:
        changes: One entry a run, in the order in which the passes returned.
        raised: The passes that an exception had left open at the end of the context, innermost first: name,
            and the program that the pass was given.
    """

    def __init__(self) -> None:
        self.changes: list[PassChange] = []
        self.raised: list[tuple[str, IRModule]] = []
        self._open: OpenRuns[tuple[str, IRModule, int]] = OpenRuns()

    def enter_pass_ctx(self) -> None:
        """Start anew, unless a pass enters the context that it runs under."""
        if self._open.enter_context():
            self.changes, self.raised = [], []

    def exit_pass_ctx(self) -> None:
        """Note the passes that an exception has left open."""
        self.raised += [(name, before) for name, before, _ in self._open.exit_context()]

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Remember what the pass is given."""
        self._open.push(info.name, (info.name, mod, len(self.changes)))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Remember what it returned; passes inside that raised were caught."""
        start, _ = self._open.pop(info.name)
        if start is not None:
            _, before, earlier = start
            self.changes.append(PassChange(info.name, before, mod, len(self.changes) == earlier))

    def __str__(self) -> str:
        """The diffs of the passes that changed something; the others by name."""
        return "\n".join(map(str, self.changes))


def _lines(mod: IRModule) -> list[str]:
    return print_module(mod, number_constants=False).text.splitlines()
