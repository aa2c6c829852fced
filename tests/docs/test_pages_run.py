"""The code of the documentation runs, and prints what the pages show.

The Python and console blocks of a page run in its order, in one process, in an empty folder. A `text` block
behind Python is what that prints. A block that is not run has the reason in a comment before it:
`<!-- not run: reason -->`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, Code, code_blocks, commands, indented_code
from tests.docs.shown_output import is_shown

GUIDE = (
    "README.md",
    *sorted(f"docs/guide/{path.name}" for path in ROOT.glob("docs/guide/*.md") if path.name != "index.md"),
)
PAGES = tuple(
    name
    for name in dict.fromkeys(
        [*GUIDE, *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md"))]
    )
    if any(block.is_run for block in code_blocks((ROOT / name).read_text()))
)
PROCESSES = {
    "README.md",
    "docs/devices.md",
    "docs/guide/compile_a_pytorch_model.md",
    "docs/guide/deploy_the_artifact.md",
    "docs/guide/read_the_result.md",
    "docs/guide/run_passes.md",
    "docs/guide/send_a_report.md",
    "docs/guide/tune_a_model.md",
    "docs/guide/when_the_answer_is_wrong.md",
    "docs/guide/write_a_kernel.md",
    "docs/guide/write_a_pass.md",
    "docs/guide/write_a_toolchain.md",
    "docs/guide/write_an_operator.md",
    "docs/schedule_search.md",
    "docs/tuning.md",
}
"""Pages that measure in worker processes, or run many commands."""
NEED_TORCH = {"docs/guide/compile_a_pytorch_model.md"}
"""Pages that `make torch` runs."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.processes] * (name in PROCESSES)) for name in PAGES]
)
def test_the_code_prints_what_the_page_shows(name: str, tmp_path: Path) -> None:
    if name in NEED_TORCH:
        pytest.importorskip("torch", reason="torch is an extra: pip install 'intarsia[torch]'")
    blocks = [block for block in code_blocks((ROOT / name).read_text()) if block.is_run]
    for block, outputs in zip(blocks, run(name, blocks, tmp_path), strict=True):
        shown = [block.output] if block.language == "python" else [one.output for one in commands(block)]
        for expected, actual in zip(shown, outputs, strict=True):
            if expected or block.language == "python":
                assert is_shown(expected, actual, has_figures=block.has_figures), (
                    f"{name}, line {block.line} shows\n{expected}\nbut this was printed:\n{actual}"
                )


def run(name: str, blocks: list[Code], folder: Path) -> list[list[str]]:
    """Run the blocks of a page in a new process, and return what each prints."""
    program = [
        (
            block.language,
            block.line,
            [block.text] if block.language == "python" else [command.text for command in commands(block)],
        )
        for block in blocks
    ]
    here = str(Path(sys.executable).parent)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("run_page.py")), name],
        input=json.dumps(program),
        env={**os.environ, "PATH": f"{here}:{os.environ['PATH']}", "XDG_DATA_HOME": str(folder / "data")},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outputs: list[list[str]] = json.loads(done.stdout)
    return outputs


def test_pages_that_start_processes_exist() -> None:
    assert set(PAGES) >= PROCESSES


@pytest.mark.parametrize("name", GUIDE)
def test_no_code_of_the_guide_escapes(name: str) -> None:
    page = (ROOT / name).read_text()
    assert not indented_code(page), "code of the guide stands between fences, so that it is run"
    languages = {block.language for block in code_blocks(page)}
    assert languages <= {"python", "console", "toml"}  # and the outputs of Python in "text"


@pytest.mark.parametrize("name", GUIDE)
def test_most_code_of_the_guide_is_run(name: str) -> None:
    blocks = [block for block in code_blocks((ROOT / name).read_text()) if block.language != "toml"]
    assert sum(not block.is_run for block in blocks) <= max(2, len(blocks) // 3)


@pytest.mark.parametrize("name", GUIDE)
def test_project_files_shown_are_those_of_an_example(name: str) -> None:
    examples = [path.read_text() for path in ROOT.glob("examples/*/pyproject.toml")]
    for block in code_blocks((ROOT / name).read_text()):
        if block.language == "toml":
            shown = any(block.text in text for text in examples)
            assert shown, f"{name}, line {block.line}: no example has these lines"


def test_reasons_are_sentences() -> None:
    reasons = [block.not_run for name in GUIDE for block in code_blocks((ROOT / name).read_text())]
    assert all(re.fullmatch(r"\w.{10,}", reason, re.DOTALL) for reason in reasons if reason)
