"""A small run of the judge's benchmark: nothing honest fails, nothing planted passes."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import judge
from benchmarks.judge_candidates import (
    ENGINES,
    FORGETFUL,
    PROGRAMS,
    Maker,
    Program,
    best_scores,
    judge_program,
    rounding,
    suppression,
)

from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.trials import trials_for

pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")


@pytest.mark.slow
def test_all_verdicts_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    table = judge.main(["mnist", "--seeds", "1", "--random", "0"])
    assert table.notes == []
    assert table.planted.total() == table.caught.total() > 15
    honest = {name for name, is_honest in table.honest.items() if is_honest}
    wrong = set(table.honest) - honest
    assert set(ENGINES) <= honest
    assert set(FORGETFUL) <= wrong
    ways = [make(0) for make in PROGRAMS]
    assert honest >= {name for program in ways for name in program.honest}
    assert wrong >= {name for program in ways for name in program.wrong}
    assert all(table.passed[name] == (table.checked[name] if name in honest else 0) for name in table.honest)
    printed = capsys.readouterr().out.splitlines()
    assert "| TopK with ties in another order | 1 | 1 |" in printed
    assert "| softmax without its maximum | 1 | 1 |" in printed
    assert f"| native | {table.checked['native']} | {table.checked['native']} |" in printed


@pytest.mark.parametrize("make", [best_scores, suppression, rounding])
def test_right_results_that_differ_do_differ(make: Maker) -> None:
    """The honest candidates of these programs do not give the expected result itself."""
    program = make(0)
    differing = set()
    for trial in trials_for(program.module, random_inputs(program.module["main"])):
        for name, compute in program.honest.items():
            if not all(map(np.array_equal, compute(trial.inputs), trial.gate.expected)):
                differing.add(name)
    assert differing == set(program.honest)


def test_what_is_missed_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A right result among the wrong toolchains stands for a mistake that the judge misses."""
    table, program = judge.Table(), rounding(0)
    (trial, *_) = trials_for(program.module, random_inputs(program.module["main"]))
    missed = Program(program.module, {}, {"the right result": lambda _: list(trial.gate.expected)})
    for finding in judge_program(missed, [trial]):
        table.note(finding, "rounding")
    table.print()
    assert [note.split(":")[0] for note in table.notes] == ["the right result on rounding"]
    assert "| the right result | 1 | 0 |" in capsys.readouterr().out
