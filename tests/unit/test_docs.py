"""The Python of the documentation runs, and prints what the page says.

A block marked `python` is run, in the order of the page, in one process a page; a block marked `text` that
follows it is what it prints.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (
    pytest.param("docs/devices.md", marks=pytest.mark.processes),
    "docs/native.md",
    pytest.param("docs/passes.md", marks=pytest.mark.processes),
    pytest.param("docs/schedule_search.md", marks=pytest.mark.processes),
    pytest.param("docs/tuning.md", marks=pytest.mark.processes),
)
RUN = """
import contextlib, io, json, sys
names = {"__name__": "__main__"}
outputs = []
for place, code in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, place, "exec"), names)
    outputs.append(out.getvalue())
json.dump(outputs, sys.stdout)
"""


@dataclass(frozen=True)
class Example:
    """Python on a page.

    Attributes:
        line: Where it starts.
        code: The Python.
        output: What it prints.
    """

    line: int
    code: str
    output: str


def examples(page: str) -> list[Example]:
    """The Python of a page, each block with the text block that follows it."""
    found: list[Example] = []
    blocks = re.finditer(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for block in blocks:
        language, content = block.groups()
        if language == "python":
            found.append(Example(page.count("\n", 0, block.start()) + 2, content, ""))
        elif language == "text":
            assert found, "a text block is the output of the Python before it"
            assert not found[-1].output, "one Python block has one output"
            found[-1] = Example(found[-1].line, found[-1].code, content)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_the_python_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    shown = examples((ROOT / name).read_text())
    assert shown
    program = [(name, "\n" * (example.line - 1) + example.code) for example in shown]
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(program),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for example, output in zip(shown, json.loads(done.stdout), strict=True):
        assert output.strip("\n") == example.output.strip("\n"), f"{name}, line {example.line}"


def test_the_entry_point_shown_is_that_of_the_example_package() -> None:
    page = (ROOT / "docs/passes.md").read_text()
    shown = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert shown
    package = (ROOT / "examples/pass_package/pyproject.toml").read_text()
    assert all(text in package for text in shown)
