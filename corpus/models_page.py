"""Write docs/models.md: the models of the corpus, the toolchains that run them, and reasons of refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from corpus.check_model import MIXED, TOOLCHAINS
from corpus.verdict import Verdict, native_share

PAGE: Final = Path(__file__).parents[1] / "docs" / "models.md"

_HEAD: Final = """# Models

`make corpus` builds these models with the exporters that people use, small and with seeded random weights,
and checks each of them. The model is imported and given as a whole to every toolchain, which must refuse it
or agree with the judge twice. What runs is saved, and loaded and run in a new process. `make corpus` fails
if a model that unoptimised onnxruntime runs does not load, if no toolchain runs the whole of it, if a
toolchain computes a wrong result, if an exception is not an IntarsiaError, or if native runs less than 95 %
of the float models whole. `make corpus-page` updates this page. `python -m corpus.check_corpus --draw SEED`
checks other widths, depths and options of the same recipes.

CI runs the corpus within minutes on two cores. To make that possible, models are shallow and narrow; each
is judged on the one set of realistic inputs that it was exported with; onnx.reference gets no models above
30 million multiply-adds; one process checks 12 models in sequence, and other processes, which compile
nothing, load the artifacts.

PyTorch comes from the environment that exports the models. It runs the operators that have a rule in
`src/intarsia/toolchain/torch/operators.py`, one at a time, and refuses models with other operators.

**yes**: runs the whole model and agrees with the judge. **no**: refuses it, for the reason in the last
column. **-**: not tried, because the reference would take minutes. **mixed**: native runs the operators
that it has kernels for, and onnxruntime the rest. *Cover* is the share of operators that native has kernels
for. If native runs a model whole, the interpreter still runs control flow, sequences and optionals, which
do not count as covered; everything else runs on native. A float model has no quantised operators and no
strings.
"""

_COLUMNS: Final = ("model", "exporter", "opset", "nodes", "special", *TOOLCHAINS, MIXED, "cover", "refused")
_CELLS: Final = {"right": "yes", "refused": "no", "skipped": "-", "missing": ""}
_LENGTH: Final = 110
"""Largest number of characters of a reason; longer ones are cut."""


def models_page(verdicts: Sequence[Verdict]) -> str:
    """Return the text of the page."""
    families = dict.fromkeys(sorted(verdict.recipe.family for verdict in verdicts))
    blocks = [_HEAD, _summary(verdicts)]
    for family in families:
        members = [verdict for verdict in verdicts if verdict.recipe.family == family]
        lines = [f"## {family[0].upper()}{family[1:]}", "", _line(_COLUMNS), _line(["---"] * len(_COLUMNS))]
        lines += [
            _line(_cells(verdict)) for verdict in sorted(members, key=lambda member: member.recipe.name)
        ]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _summary(verdicts: Sequence[Verdict]) -> str:
    """Return the summary of all models."""
    total = len(verdicts)
    whole, floats = native_share(verdicts)
    runs = [verdict for verdict in verdicts if verdict.status("expected") == "right"]
    loads = sum(verdict.status("import") == "right" for verdict in runs)
    served = sum(bool(verdict.served_by) for verdict in runs)
    wrong = sum("wrong" in map(verdict.status, (*TOOLCHAINS, MIXED)) for verdict in verdicts)
    families = len({verdict.recipe.family for verdict in verdicts})
    lines = [
        f"* {total} models of {families} families; unoptimised onnxruntime runs {len(runs)} of them.",
        f"* Of these {loads} load, and a toolchain runs {served} whole. A toolchain computes {wrong} wrong.",
        f"* Native runs {whole} of {floats} models of floats whole ({_percent(whole, floats)}).",
    ]
    for name in (*TOOLCHAINS, MIXED):
        right = sum(verdict.status(name) == "right" for verdict in verdicts)
        skipped = sum(verdict.status(name) == "skipped" for verdict in verdicts)
        tried = total - skipped
        lines.append(f"* {name}: {right} of {tried} models given to it ({_percent(right, tried)}).")
    return "\n".join(lines) + "\n"


def _cells(verdict: Verdict) -> Iterator[str]:
    yield verdict.recipe.name
    yield verdict.recipe.exporter
    yield str(verdict.record.get("opset", ""))
    yield str(sum(verdict.record.get("operators", {}).values()))
    yield ", ".join(verdict.recipe.features)
    for name in (*TOOLCHAINS, MIXED):
        status = verdict.status(name)
        yield _CELLS.get(status, status)
    cover = verdict.outcomes.get("cover", {})
    yield _percent(cover.get("covered", 0), cover.get("calls", 0)) if cover.get("calls") else ""
    yield "; ".join(_reasons(verdict))


def _reasons(verdict: Verdict) -> Iterator[str]:
    """Yield the reasons why the importer or toolchains refuse a model."""
    for step in ("build", "expected", "import", "judge", *TOOLCHAINS, MIXED):
        outcome = verdict.outcomes.get(step, {"status": "missing"})
        if outcome["status"] in {"right", "skipped", "missing"}:
            continue
        refused = verdict.outcomes.get("cover", {}).get("refused", {}) if step == "native" else {}
        text = (
            "no kernel for " + ", ".join(sorted(refused))
            if refused
            else short_reason(str(outcome.get("message", "")))
        )
        yield f"{step}: {text}"


def short_reason(message: str) -> str:
    """Return the first line of a message, cut short, without paths, addresses, and characters of tables."""
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    first = re.sub(r"^\w+ cannot compile this: ", "", first)
    first = re.sub(r"(/[\w.+-]+){2,}", "...", first)
    first = re.sub(r"0x[0-9a-f]+", "...", first).replace("|", "/").replace("`", "'")
    return first if len(first) <= _LENGTH else first[: _LENGTH - 3].rsplit(" ", 1)[0] + "..."


def _percent(part: int, whole: int) -> str:
    return f"{100 * part // whole} %" if whole else "-"


def _line(cells: Sequence[str] | Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"
