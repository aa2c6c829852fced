"""How many candidates are evaluated: passes in a row add up, passes inside passes multiply."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.each_case import each_case
from tests.tuning_passes import CostTable, NoteHeuristic, layout, mock, parallel, program

from intarsia.support.errors import UsageError
from intarsia.transform import Pass, Sequential
from intarsia.tune import TuningContext


def layout_beside(*passes: Pass) -> Pass:
    return layout(*passes)  # type: ignore[arg-type]  # heuristic passes too


CONTRACTS: dict[str, tuple[Sequence[Pass], int]] = {
    "one pass": ([parallel()], 2),
    "another": ([layout()], 3),
    "heuristic in front": ([NoteHeuristic(), layout()], 3),
    "heuristic inside": ([layout_beside(NoteHeuristic())], 3),
    "heuristic behind": ([layout(), NoteHeuristic()], 3),
    "in a row": ([parallel(), layout()], 2 + 3),
    "in the other order": ([layout(), parallel()], 3 + 2),
    "jointly": ([parallel(layout())], 2 * 3),
    "jointly, the other way round": ([layout(parallel())], 3 * 2),
    "three levels": ([layout(parallel(mock()))], 3 * 2 * 5),
    "two inside one": ([layout(parallel(), mock())], 3 * (2 + 5)),
    "joint, then alone": ([parallel(layout()), mock()], 2 * 3 + 5),
}


@each_case("name", CONTRACTS)
def test_contracts(name: str) -> None:
    passes, expected = CONTRACTS[name]
    ctx = TuningContext(CostTable())
    Sequential(passes)(program(), ctx)
    assert ctx.num_evals == ctx.counts.proposed == expected


def test_equal_candidates_are_proposed_but_measured_once() -> None:
    table = CostTable()
    ctx = TuningContext(table)
    Sequential([layout(), layout()])(program(), ctx)
    assert ctx.counts.proposed == 6
    assert ctx.counts.measured == len(table.measured) == 3


def test_counts_are_of_the_context_and_of_those_made_of_it() -> None:
    first, second = TuningContext(CostTable()), TuningContext(CostTable())
    parallel(layout())(program(), first)
    parallel()(program(), second)
    assert (first.num_evals, second.num_evals) == (6, 2)


def test_a_context_without_a_judge_is_refused() -> None:
    with pytest.raises(UsageError, match="does not say how"):
        layout()(program())
