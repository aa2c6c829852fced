"""The Before and After of every pass's docstring, executed."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.each_case import each_case
from tests.every_pass import every_loop_pass, every_pass

from intarsia.ir import IRModule, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.op import verify
from intarsia.passes import InferType
from intarsia.transform import Pass, Sequential

EVERY = (*reversed(every_pass()), *every_loop_pass())
PASSES = {item.info.name: item for item in EVERY if not isinstance(item, Sequential)}
CHANGES_NOTHING = frozenset({"PrintIR"})
"""Passes that leave the program as it is: their docstrings have no Before and After."""


def example(item: Pass) -> tuple[IRModule, IRModule]:
    """The programs of a docstring; both may use the constants that it lists."""
    text = inspect.getdoc(type(item)) or ""
    before, after, constants = (section(text, name) for name in ("Before", "After", "Constants"))
    assert before, f"{item.info.name} has no Before in its docstring"
    assert after, f"{item.info.name} has no After in its docstring"
    arrays = tuple(map(array, re.findall(r"\S+\([^)]*\)|\[\[.*?\]\]|\[[^]]*\]|\S+", constants)))
    return InferType()(parse_module(before, arrays)), InferType()(parse_module(after, arrays))


def section(text: str, name: str) -> str:
    found = re.search(rf"^{name}:\n((?: .*\n?|\n)+)", text, re.MULTILINE)
    return textwrap.dedent(found[1]).strip() if found else ""


def array(text: str) -> npt.NDArray[Any]:
    """`zeros(2, 3)`, `full(2, 3, 1, int8)`, `[1, 2]`, `[[1], [3]]`, `0.5`: whole numbers are int64."""
    typed = re.fullmatch(r"full\((.*), (\w+), (\w+)\)", text)
    if typed is not None:
        return np.full(tuple(map(int, typed[1].split(","))), int(typed[2]), typed[3])
    filled = re.fullmatch(r"(zeros|ones)\((.*)\)", text)
    if filled is not None:
        shape = tuple(int(dim) for dim in filled[2].split(",") if dim.strip())
        return np.full(shape, filled[1] == "ones", np.float32)
    value = np.array(ast.literal_eval(text))
    return value.astype(np.int64 if value.dtype.kind == "i" else np.float32)


@each_case("name", sorted(PASSES.keys() - CHANGES_NOTHING))
def test_before_becomes_after(name: str) -> None:
    item = PASSES[name]
    before, after = example(item)
    verify(before)
    made = InferType()(item(before))
    assert structural_equal(made, after), f"{item} makes of\n{before}\nthis\n{made}\nnot\n{after}"


def test_every_pass_stands_in_a_file_named_after_it() -> None:
    homes = {name: type(item).__module__.rpartition(".")[2] for name, item in PASSES.items()}
    assert {name: home for name, home in homes.items() if home.replace("_", "") != name.lower()} == {}
