"""Tuning passes: decisions as data, candidates, and what they cost (DESIGN section 6; seed relax_pass_infra).

transformation, plain_data       what choices name, and what they may carry
choice, instruction, trace       one way to decide; what is decided; what was decided
plain_pass                       a pass as a choice
evaluator                        who says what a program costs
measuring_evaluator              by measuring it
tuning_tree                      what was tried, to be printed
tuning_context                   what tuning passes run under
candidates                       the steps of a feedback loop
strategy                         which combinations of decisions are tried
best_decisions                   a loop around a strategy
evaluation_log                   evaluations in a file, and a run repeated from it
prediction                       the best that is known, without measuring
extract_subgraph                 parts of a program as programs of their own
tune_in_turns                    one budget for the tuning passes of a sequence
validate                         whether a program or sequence can be used at all
tuning_pass                      passes that decide by measuring

It knows neither toolchains nor loops: that makes joint tuning one mechanism for all of them.
"""

from intarsia.tune.candidates import (
    consider_eval_passes,
    evaluate,
    generate_candidates,
    select_best_candidate,
)
from intarsia.tune.choice import Choice
from intarsia.tune.evaluator import Evaluation, Evaluator
from intarsia.tune.extract_subgraph import extract_subgraph
from intarsia.tune.instruction import Instruction
from intarsia.tune.measuring_evaluator import MeasuringEvaluator
from intarsia.tune.prediction import predict, query_cost_model
from intarsia.tune.trace import Trace, get_trace
from intarsia.tune.transformation import constraint, transformation
from intarsia.tune.tune_in_turns import TuneInTurns
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import HeuristicPass, TuningPass
from intarsia.tune.validate import validate

__all__ = [
    "Choice",
    "Evaluation",
    "Evaluator",
    "HeuristicPass",
    "Instruction",
    "MeasuringEvaluator",
    "Trace",
    "TuneInTurns",
    "TuningContext",
    "TuningPass",
    "consider_eval_passes",
    "constraint",
    "evaluate",
    "extract_subgraph",
    "generate_candidates",
    "get_trace",
    "predict",
    "query_cost_model",
    "select_best_candidate",
    "transformation",
    "validate",
]
