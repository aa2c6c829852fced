"""The runs of passes that have not returned yet, for instruments that pair what they see before and after."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class OpenRuns(Generic[T]):
    """A stack of records, one for each pass that runs, with the contexts that were entered around them.

    A context may be entered while passes run, by a pass itself: the records below it stay. A pass that raises
    leaves a record behind, which ends with the pass or the context around it. A context whose instruments are
    replaced by a pass may see the end of a pass of which it has not seen the start.
    """

    def __init__(self) -> None:
        self._records: list[tuple[str, T]] = []
        self._entered: list[int] = []

    @property
    def records(self) -> tuple[T, ...]:
        """The records, outermost first."""
        return tuple(record for _, record in self._records)

    @property
    def is_entered(self) -> bool:
        """Whether a context that was entered has not been left."""
        return bool(self._entered)

    def enter_context(self) -> bool:
        """Note that a context was entered, and return whether no other is around it."""
        self._entered.append(len(self._records))
        return len(self._entered) == 1

    def exit_context(self) -> tuple[T, ...]:
        """Remove the records of passes that have raised under the innermost context, innermost first."""
        return self._cut(self._entered.pop() if self._entered else 0)

    def push(self, name: str, record: T) -> None:
        """Add the record of a pass that starts."""
        self._records.append((name, record))

    def pop(self, name: str) -> tuple[T | None, tuple[T, ...]]:
        """Remove the record of a pass that returns.

        Returns:
            The record, None if the start of the pass was not seen; then those of passes inside that have
            raised, innermost first.
        """
        positions = [index for index, (other, _) in enumerate(self._records) if other == name]
        if not positions or positions[-1] < (self._entered[-1] if self._entered else 0):
            return None, ()
        raised = self._cut(positions[-1] + 1)
        return self._records.pop()[1], raised

    def _cut(self, length: int) -> tuple[T, ...]:
        removed = tuple(record for _, record in reversed(self._records[length:]))
        del self._records[length:]
        return removed
