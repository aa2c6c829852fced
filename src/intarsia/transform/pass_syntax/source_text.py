"""A text of passes, and errors that point into it."""

from __future__ import annotations

from dataclasses import dataclass, field

from intarsia.support.caret import caret_lines
from intarsia.support.errors import UsageError


@dataclass(eq=False)
class PassTextError(UsageError):
    """A text of passes that cannot be read, or names a pass, option or value that there is not.

    Attributes:
        position: Index of the character of the text at which the error is.
    """

    position: int = field(default=0, kw_only=True)


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text that is read.

    Attributes:
        text: The whole text.
    """

    text: str

    def error(self, position: int, problem: str, help_text: str = "") -> PassTextError:
        """Return an error with a caret below one character of the text.

        Args:
            position: Index of the character.
            problem: One sentence with the problem.
            help_text: Advice to the user.
        """
        before = self.text[:position]
        column = position - before.rfind("\n")
        where = caret_lines(self.text, before.count("\n") + 1, column)
        return PassTextError(f"{problem}\n{where}", help=help_text, position=position)
