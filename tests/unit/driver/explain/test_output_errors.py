"""Errors of a winner by output and input set."""

from __future__ import annotations

import numpy as np
from tests.ir_programs import relu, var

from intarsia.build import build
from intarsia.driver.explain.output_errors import output_errors
from intarsia.ir import Function, IRModule
from intarsia.measure.candidate_kind import WHOLE, instantiate
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.trials import trials_for
from intarsia.target.reference import REFERENCE_TARGET


def program() -> IRModule:
    x = var()
    return IRModule.from_expr(Function((x,), relu(x)))


def test_a_right_program_has_a_row_for_each_input_set() -> None:
    module = program()
    trials = trials_for(module, random_inputs(module["main"]))
    with build(instantiate(module, REFERENCE_TARGET, WHOLE)) as executable:
        records = output_errors(executable, trials)
    assert [record.inputs for record in records] == [trial.name for trial in trials]
    assert {(record.verdict, record.max_abs) for record in records} == {("right", 0.0)}
    assert records[0].judge == trials[0].gate.reference


def test_a_wrong_program_is_wrong_on_the_inputs_that_show_it() -> None:
    module, x = program(), var()
    trials = trials_for(module, random_inputs(module["main"]))
    other = IRModule.from_expr(Function((x,), relu(relu(x))))
    wrong = IRModule.from_expr(Function((x,), x))
    for candidate, verdicts in ((other, {"right"}), (wrong, {"wrong"})):
        with build(instantiate(candidate, REFERENCE_TARGET, WHOLE)) as executable:
            records = output_errors(executable, trials)
        shown = {
            record.verdict
            for record, trial in zip(records, trials, strict=True)
            if (np.concatenate([array.ravel() for array in trial.inputs.values()]) < 0).any()
        }
        assert shown == verdicts
