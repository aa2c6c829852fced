"""Collecting the diagnostics of passes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from intarsia.ir import Call, Constant, Expr, IRModule, Op
from intarsia.ir.constant_literal import literal_text
from intarsia.ir.listing import Listing
from intarsia.ir.printer import list_module
from intarsia.support.errors import UsageError
from intarsia.transform.diagnostic import Diagnostic
from intarsia.transform.instrument.open_runs import OpenRuns
from intarsia.transform.instrument.pass_instrument import PassInstrument
from intarsia.transform.pass_info import PassInfo


@dataclass(frozen=True, slots=True)
class CollectedDiagnostic:
    """A diagnostic, with the program that names of expressions come from.

    Attributes:
        diagnostic: The diagnostic.
        mod: Program that the pass was given; None outside of passes.
    """

    diagnostic: Diagnostic
    mod: IRModule | None


class Diagnostics(PassInstrument):
    """Keeps what passes say of the program: `ctx.diagnose`.

    Args:
        pattern: Regular expression; only diagnostics are kept that it matches somewhere in
            `PASS: LEVEL: TEXT`, such as "ConvertLayout", "missed" or "layout|fuse".

    Attributes:
        collected: The diagnostics, in order; one that is said again of the same expression is kept once.

    Raises:
        UsageError: The pattern is no regular expression.
    """

    def __init__(self, pattern: str = "") -> None:
        try:
            self._matches = re.compile(pattern).search
        except re.error as error:
            raise UsageError(f"{pattern!r} is no regular expression: {error}") from None
        self.collected: list[CollectedDiagnostic] = []
        self._seen: set[Diagnostic] = set()
        self._open: OpenRuns[IRModule] = OpenRuns()
        self._names: tuple[IRModule, dict[Expr, str]] | None = None

    def enter_pass_ctx(self) -> None:
        """Start anew, unless a pass enters the context that it runs under."""
        if self._open.enter_context():
            self.collected, self._names = [], None
            self._seen = set()

    def exit_pass_ctx(self) -> None:
        """Forget the passes that an exception has left open."""
        self._open.exit_context()

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Remember the program, for the names of its expressions."""
        self._open.push(info.name, mod)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Forget it."""
        self._open.pop(info.name)

    def run_diagnostic(self, diagnostic: Diagnostic) -> None:
        """Keep a diagnostic that matches."""
        line = f"{diagnostic.pass_name}: {diagnostic.level}: {diagnostic.text}"
        if diagnostic in self._seen or not self._matches(line):
            return
        self._seen.add(diagnostic)
        programs = self._open.records
        self.collected.append(CollectedDiagnostic(diagnostic, programs[-1] if programs else None))

    def render(self) -> str:
        """The diagnostics as text, with notes below each; "" if there are none.

        An expression is named as in the text of the program that the pass was given: `Conv %12`.
        """
        return "\n".join(line for item in self.collected for line in self._lines(item))

    def records(self) -> list[dict[str, object]]:
        """The diagnostics as plain data."""
        return [
            {
                "pass": item.diagnostic.pass_name,
                "level": item.diagnostic.level.value,
                "text": item.diagnostic.text,
                **self._record(item.diagnostic.expr, item.mod),
                "notes": [
                    {"text": note.text, **self._record(note.expr, item.mod)} for note in item.diagnostic.notes
                ],
            }
            for item in self.collected
        ]

    def _lines(self, item: CollectedDiagnostic) -> list[str]:
        diagnostic = item.diagnostic
        subject = self._described(diagnostic.expr, item.mod)
        head = f"{diagnostic.level}: {diagnostic.pass_name}: {subject} {diagnostic.text}"
        notes = (f"  note: {self._described(note.expr, item.mod)} {note.text}" for note in diagnostic.notes)
        return [head, *notes]

    def _described(self, expr: Expr, mod: IRModule | None) -> str:
        record = self._record(expr, mod)
        parts = [str(record[key]) for key in ("operator", "name") if record[key]]
        node = f" (node {record['node']!r})" if record["node"] else ""
        return " ".join(parts) + node

    def _record(self, expr: Expr, mod: IRModule | None) -> dict[str, object]:
        name = None if mod is None else self._names_of(mod).get(expr)
        if isinstance(expr, Constant):
            name = literal_text(expr.data) or str(expr.checked_type)
        is_call = isinstance(expr, Call) and isinstance(expr.op, Op)
        operator = str(expr.op) if isinstance(expr, Call) and is_call else type(expr).__name__
        return {"operator": operator, "name": name, "node": None if expr.span is None else expr.span.node}

    def _names_of(self, mod: IRModule) -> dict[Expr, str]:
        if self._names is None or self._names[0] is not mod:
            listing = Listing()
            list_module(mod, listing)
            self._names = (mod, {expr: name for (_, expr), name in listing.name_of.items()})
        return self._names[1]
