"""Completion words of bash, which splits `zoo:mnist` into three words at the colon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from intarsia.cli.arguments.completion import AFTER_PREFIX
from intarsia.frontend.zoo_name import ZOO_PREFIX

_VARIABLE: Final = "_INTARSIA_COMPLETE"
_ZOO, _COLON = ZOO_PREFIX[:-1], ZOO_PREFIX[-1]


def rejoined_words(environ: Mapping[str, str]) -> dict[str, str]:
    """Return environment changes of a completion that join `zoo:` and a name to one word again.

    Bash replaces only the text after the colon, so completions must leave the prefix out: the
    variable `AFTER_PREFIX` is then set.

    Args:
        environ: Environment with COMP_WORDS, all words, and COMP_CWORD, the position of the one to complete.
    """
    if environ.get(_VARIABLE) != "complete_bash" or not environ.get("COMP_CWORD", "").isdigit():
        return {}
    words, current = environ.get("COMP_WORDS", "").split(), int(environ["COMP_CWORD"])
    before, last = words[:current], words[current] if current < len(words) else ""
    changes: dict[str, str] = {}
    if before[-2:] == [_ZOO, _COLON]:
        before, changes = before[:-2], {AFTER_PREFIX: "1"}
    elif before[-1:] == [_ZOO] and last == _COLON:
        before, last, changes = before[:-1], "", {AFTER_PREFIX: "1"}
    joined: list[str] = []
    for word in before:
        if (joined[-1:] == [_ZOO] and word == _COLON) or joined[-1:] == [ZOO_PREFIX]:
            joined[-1] += word
        else:
            joined.append(word)
    return {"COMP_WORDS": " ".join([*joined, last]), "COMP_CWORD": str(len(joined)), **changes}
