"""Arguments that JSON holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from intarsia.support.errors import UsageError

PlainArgs: TypeAlias = Mapping[str, Any]
"""Numbers, texts, truth values, None, and lists and dictionaries of such, by name."""


def plain_args(args: PlainArgs) -> PlainArgs:
    """The arguments, as JSON gives them back: tuples are lists.

    Raises:
        UsageError: One of them is nothing that JSON holds.
    """
    try:
        found = json.loads(json.dumps(dict(args), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the arguments {dict(args)} are not plain data: {error}",
            help="give numbers, texts, truth values, None, and lists and dictionaries of such",
        ) from None
    return MappingProxyType(found)
