"""Lists of pass names, as people give them."""

from __future__ import annotations

from collections.abc import Iterable

from intarsia.support.errors import UsageError


def name_list(argument: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names as a tuple.

    Args:
        argument: Name of the argument, for messages.
        names: The names.

    Raises:
        UsageError: One string instead of a list of strings, no list, or something in it that is no string.
    """
    if isinstance(names, str):
        raise UsageError(
            f"{argument} is the string {names!r}, expected a list of pass names", help=f"write [{names!r}]"
        )
    if not isinstance(names, Iterable):
        raise UsageError(f"{argument} is of type {type(names).__name__}, expected a list of pass names")
    listed = tuple(names)
    for item in listed:
        if not isinstance(item, str):
            info = getattr(item, "info", None)
            what = f"the class {item.__name__}" if isinstance(item, type) else f"a {type(item).__name__}"
            raise UsageError(
                f"{argument} has {what} in it, expected the names of passes",
                help="" if info is None else f"write {info.name!r}, the name of that pass",
            )
        if "{" in item:
            raise UsageError(
                f"{argument} has {item!r}, expected the name of a pass",
                help=f"write {item.partition('{')[0]!r}: a name stands for a pass with any options",
            )
    return listed
