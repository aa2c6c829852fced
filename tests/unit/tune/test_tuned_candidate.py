"""Programs after decisions as candidates."""

from __future__ import annotations

import json
import re

import pytest
from tests.tuning_passes import decided, program

from intarsia.ir import structural_digest
from intarsia.measure.candidate_kind import AS_IT_IS, WHOLE, instantiate
from intarsia.measure.measure_input import Candidate
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.tune import Choice, Instruction, Trace
from intarsia.tune.tuned_candidate import (
    KIND,
    apply_decisions,
    decision_from_json,
    decisions_and_base,
    decisions_json,
    decisions_of,
    tuned_candidate,
)

TARGET = Target("cpu -toolchain=reference")
LAYOUT = Instruction(
    "layout", {"NHWC": Choice(decided, {"what": "layout", "value": "NHWC"}), "none": Choice()}
)


def trace(*decisions: str) -> Trace:
    found = Trace(program())
    for decision in decisions:
        found.add(LAYOUT, decision)
    return found


def test_what_decides_nothing_is_left_out() -> None:
    assert decisions_of(trace("none", "none")) == ()
    assert tuned_candidate((), WHOLE) is WHOLE
    ((text, choice),) = decisions_of(trace("none", "NHWC"))
    assert text == "layout: NHWC"
    assert choice == LAYOUT.choice("NHWC")


@pytest.mark.parametrize("base", [WHOLE, AS_IT_IS], ids=["whole", "as it is"])
def test_any_process_carries_it_out(base: Candidate) -> None:
    found = trace("NHWC")
    candidate = tuned_candidate(decisions_of(found), base)
    again = Candidate(KIND, json.loads(candidate.text))
    assert again.digest == candidate.digest
    decisions, then = decisions_and_base(again)
    assert decisions == decisions_of(found)
    assert then.digest == base.digest
    assert tuple(map(decision_from_json, decisions_json(decisions))) == decisions
    assert structural_digest(apply_decisions(program(), again)) == structural_digest(found.out_mod)
    made = instantiate(program(), TARGET, again)
    assert structural_digest(made) == structural_digest(instantiate(found.out_mod, TARGET, base))


def test_other_candidates_decide_nothing() -> None:
    mod = program()
    assert decisions_and_base(WHOLE) == ((), WHOLE)
    assert apply_decisions(mod, WHOLE) is mod


@pytest.mark.parametrize(
    "damaged", [None, [], {}, {"decisions": [{}], "then": {}}, {"decisions": []}], ids=json.dumps
)
def test_damage(damaged: object) -> None:
    with pytest.raises(UsageError, match=re.escape("malformed")):
        decisions_and_base(Candidate(KIND, damaged))  # type: ignore[arg-type]  # damaged
