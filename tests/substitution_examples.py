"""The programs before and after that substitution rules show, and programs of other sizes made of them."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.op import infer_types
from intarsia.tune.substitution import RULES, Dataflow, Substitution, SubstitutionRule, find_substitutions

EVERY_RULE = tuple(RULES[name] for name in RULES)

SYMBOL = re.compile(r"(?<=[(, ])([A-Z])(?=[,)])")
"""A named dimension in the text of a program."""


def example(rule: SubstitutionRule, sizes: Mapping[str, int] | None = None) -> tuple[IRModule, IRModule]:
    """The programs before and after of a rule, with numbers for named dimensions if any are given."""
    before, after, constants = (_section(rule.text, name) for name in ("Before", "After", "Constants"))
    arrays = tuple(map(_array, _values(constants)))
    if sizes is not None:
        before, after = (SYMBOL.sub(lambda found: str(sizes[found[1]]), text) for text in (before, after))
    return tuple(infer_types(parse_module(text, arrays)) for text in (before, after))  # type: ignore[return-value]


def symbols(rule: SubstitutionRule) -> tuple[str, ...]:
    """The named dimensions of a rule's program."""
    return tuple(sorted(set(SYMBOL.findall(_section(rule.text, "Before")))))


def places(rule: SubstitutionRule, mod: IRModule) -> list[Substitution]:
    """Where a rule can be applied."""
    return list(find_substitutions(Dataflow.of(mod), [rule]))


def _section(text: str, name: str) -> str:
    found = re.search(rf"^{name}:\n((?: .*\n?|\n)+)", text, re.MULTILINE)
    return textwrap.dedent(found[1]).strip() if found else ""


def _values(text: str) -> list[str]:
    """The numbers and nested lists of a text, split at spaces outside brackets."""
    found, depth = [""], 0
    for sign in " ".join(text.split()):
        depth += (sign == "[") - (sign == "]")
        if sign == " " and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return [each for each in found if each]


def _array(text: str) -> npt.NDArray[Any]:
    """Whole numbers are int64, others float32."""
    value = np.array(ast.literal_eval(text))
    return value.astype(np.int64 if value.dtype.kind == "i" else np.float32)
