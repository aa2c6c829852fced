"""The lines of a program text that put one value on two devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from intarsia.ir import IRModule
from intarsia.ir.listing import Listing
from intarsia.ir.printer import list_module
from intarsia.passes.devices.device_domains import DeviceConflictError, Site

_LONGEST_LINE: Final = 100


def add_conflict_lines(error: DeviceConflictError, mod: IRModule) -> None:
    """Add a note with variable and line of each annotation that names no node of a model.

    The lines are those of the printed program, which are those of a text that was printed before.

    Args:
        error: The error.
        mod: Program in which the annotations stand.
    """
    sites = [site for site in error.sites if site.expr.span is None]
    if sites:
        listing = Listing()
        list_module(mod, listing)
        for note in dict.fromkeys(note for site in sites for note in _notes(site, listing)):
            error.add_note(note)


def _notes(site: Site, listing: Listing) -> Iterator[str]:
    key = site.owner, site.expr
    line = listing.line_of.get(key)
    if line is not None:
        text = listing.lines[line].strip()
        if len(text) > _LONGEST_LINE:
            text = f"{text[:_LONGEST_LINE]}..."
        name = listing.name_of.get(key)
        yield f"line {line + 1}{f', {name}' if name else ''}: {text}"
