"""The vocabulary of the code: list each line that breaks a rule of docs/language.md.

    python -m checks.language               every violation, as path:line: rule: text; exit code 1 if any
    python -m checks.language src/intarsia  only those below a folder
    python -m checks.language --counts      the number of violations by rule and folder

The rules; docs/language.md gives the reasons:

name      a variable, parameter or field has a vague name (`VAGUE_NAMES`) and is used over more than 3 lines
args      the description of an argument or attribute is a fragment (begins with "Of", "Them", "How" ...)
person    a docstring, comment or message speaks of things as of persons (who, tells, asks, knows ...)
dialect   a private word stands where the field has one ("in turns", "booked" ...)

In `tests` only args and dialect are checked.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("src", "benchmarks", "corpus", "examples", "checks", "tests")
PAGES: Final = ("README.md", "CONTRIBUTING.md", "docs")

VAGUE_NAMES: Final = frozenset({"found", "each", "one", "made", "known", "told", "own", "place", "thing"})
SHORT_LIVED_LINES: Final = 3
"""A name that is used over this many lines or fewer explains itself by what stands beside it."""

FRAGMENT: Final = re.compile(
    r"(Of|Them|Those|They|It|That|Who|Whom|Whose|What|Which|How|Where|When|With|By|In|From|To|As|So|If|Told|"
    r"Asked|Everything|Everybody|Nothing|Not|Only|Also|Likewise|The same|Or|And|At|On|After|Before)\b"
)
PERSON: Final = re.compile(
    r"\b(who|whom|everybody|everybody's|nobody|nobody's|somebody|anybody|tells?|told|asks|asked|knows|"
    r"wants|wishes|likes|is content|are content|says so|minds|cares)\b",
    re.IGNORECASE,
)
DIALECT: Final = re.compile(
    r"\b(in turns|booked|book of schedules|schedule book|ask(?:ing)? for (?:memory|weights)|"
    r"lanes switched off|left behind whole vectors|panel copied|settled|the engines do the like|"
    r"of before|beside each other|one by one after)\b",
    re.IGNORECASE,
)

ALLOWED: Final = (
    # (rule, path, text that the line contains): the word is right there.
    ("person", "checks/language.py", ""),
    ("dialect", "checks/language.py", ""),
    ("name", "checks/language.py", ""),
    # The argument is stored in traces under this name.
    ("name", "src/intarsia/tune/substitution/substitute.py", "place"),
    # Fields of stored explanations: their names are JSON keys.
    ("name", "src/intarsia/report/explained_function.py", "known"),
    ("name", "src/intarsia/report/explanation.py", "own"),
)

TESTS: Final = "tests/"
TEST_RULES: Final = frozenset({"args", "dialect"})
"""Rules that hold in tests; docs/language.md gives the reason."""

QUOTING: Final = ("docs/decisions/", "docs/language.md")
"""Pages that quote what the rules forbid, or that are kept as they were written."""


@dataclass(frozen=True)
class Violation:
    """A line that breaks a rule.

    Attributes:
        path: Path of the file from the project root.
        line: Line number, from 1.
        rule: Name of the rule.
        text: The word or phrase that breaks it.
    """

    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


def vague_names(tree: ast.AST, path: str) -> Iterator[Violation]:
    """Names without meaning that live longer than three lines, and fields with such names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _vague_locals(node, path)
        elif isinstance(node, ast.ClassDef):
            for item in node.body:
                name = item.target if isinstance(item, ast.AnnAssign) else None
                if isinstance(name, ast.Name) and name.id.strip("_") in VAGUE_NAMES:
                    yield Violation(path, name.lineno, "name", name.id)


def _vague_locals(function: ast.FunctionDef | ast.AsyncFunctionDef, path: str) -> Iterator[Violation]:
    lines: dict[str, list[int]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in VAGUE_NAMES:
            lines.setdefault(node.id, []).append(node.lineno)
        elif isinstance(node, ast.arg) and node.arg in VAGUE_NAMES:
            lines.setdefault(node.arg, []).append(node.lineno)
    for name, used in lines.items():
        if max(used) - min(used) >= SHORT_LIVED_LINES:
            yield Violation(path, min(used), "name", name)


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Docstrings, and the strings below constants, each with its first line."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for item in body if isinstance(body, list) else ():
            value = item.value if isinstance(item, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.lineno, value.value


def argument_fragments(line: int, text: str, path: str) -> Iterator[Violation]:
    """Descriptions of arguments and attributes that are no phrases."""
    is_section = False
    for offset, row in enumerate(text.splitlines()):
        stripped = row.strip()
        if re.fullmatch(r"(Args|Attributes|Returns|Raises|Yields|Example|Examples|Note):", stripped):
            is_section = stripped in {"Args:", "Attributes:"}
        elif is_section and (match := re.fullmatch(r"\*{0,2}\w+(?: \([^)]*\))?: (.*)", stripped)):
            is_fragment = FRAGMENT.match(match[1])
            if is_fragment:
                yield Violation(path, line + offset, "args", stripped[:60])


def persons_and_dialect(line: int, text: str, path: str) -> Iterator[Violation]:
    """Words in prose for things as persons, and words of a private dialect."""
    for offset, row in enumerate(text.splitlines()):
        for rule, pattern in (("person", PERSON), ("dialect", DIALECT)):
            for match in pattern.finditer(row):
                yield Violation(path, line + offset, rule, f"{match[0]!r} in {row.strip()[:80]!r}")


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Texts for people inside of calls: of errors, helps and notes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for value in (*node.args, *(keyword.value for keyword in node.keywords)):
                parts = value.values if isinstance(value, ast.JoinedStr) else [value]
                for part in parts:
                    if isinstance(part, ast.Constant) and isinstance(part.value, str) and " " in part.value:
                        yield part.lineno, part.value


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def check_module(path: Path) -> Iterator[Violation]:
    """Violations of a Python file."""
    source, name = path.read_text("utf-8"), path.relative_to(ROOT).as_posix()
    tree = ast.parse(source)
    yield from vague_names(tree, name)
    texts = list(docstrings(tree))
    for line, text in texts:
        yield from argument_fragments(line, text, name)
    for line, text in (*texts, *messages(tree), *comments(source)):
        yield from persons_and_dialect(line, text, name)


def check_page(path: Path) -> Iterator[Violation]:
    """Violations of a Markdown file."""
    yield from persons_and_dialect(1, path.read_text("utf-8"), path.relative_to(ROOT).as_posix())


def files() -> Iterator[Path]:
    """Files that are checked."""
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))
    for page in PAGES:
        path = ROOT / page
        yield from sorted(path.rglob("*.md")) if path.is_dir() else (path,)


def violations(below: str = "") -> list[Violation]:
    """Violations in all files below a folder, without what is allowed."""
    unsorted: set[Violation] = set()
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(below) and not name.startswith(QUOTING):
            unsorted.update(check_module(path) if path.suffix == ".py" else check_page(path))
    return sorted(filter(is_forbidden, unsorted), key=lambda item: (item.path, item.line, item.text))


def is_forbidden(violation: Violation) -> bool:
    """Whether a rule holds where it is broken, and no exception allows the text."""
    if violation.path.startswith(TESTS) and violation.rule not in TEST_RULES:
        return False
    return not any(
        rule == violation.rule and path == violation.path and text in violation.text
        for rule, path, text in ALLOWED
    )


def main(arguments: list[str]) -> int:
    """Print the violations and return the exit code."""
    paths = [argument for argument in arguments if not argument.startswith("-")]
    listed = violations(paths[0] if paths else "")
    if "--counts" in arguments:
        counts = Counter((item.rule, "/".join(item.path.split("/")[:3])) for item in listed)
        for (rule, folder), count in sorted(counts.items()):
            print(f"{count:6} {rule:8} {folder}")
    else:
        print(*listed, sep="\n")
    print(f"{len(listed)} violations of docs/language.md")
    return 1 if listed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
