"""A pass as a choice."""

from __future__ import annotations

from intarsia.support.errors import UsageError
from intarsia.transform import Pass, Sequential
from intarsia.transform.pass_trace import plain_options
from intarsia.tune.choice import Choice


def pass_choice(item: Pass) -> Choice:
    """The choice that applies a pass, by its name and options.

    Raises:
        UsageError: It is a sequence, which has no name of its own, or an option is no plain data.
    """
    if isinstance(item, Sequential):
        raise UsageError(
            f"the sequence {item.info.name} is no single pass", help="make a choice of each pass"
        )
    return Choice(item.info.name, plain_options(item))
