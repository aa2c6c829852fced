"""Tuning passes: decisions as data, candidates, and what they cost (DESIGN section 6; seed relax_pass_infra).

transformations                  what choices name
choice, instruction, trace       one way to decide, and its plain arguments; what is decided; what was decided
heuristic_pass                   passes without a feedback loop, as decisions
evaluator                        the cost of candidates
measuring_evaluator              costs by measuring
tuning_tree                      the tree of candidates, to be printed
tuning_context                   the context of tuning passes
run_control                      the budget of a run, and what it left out
placed_candidate                 candidates with a placement among their decisions, in one form
contest                          the candidates for a whole model, and their race
candidates                       the steps of a feedback loop
strategy                         which combinations of decisions are tried
evaluation_log                   evaluations in a file, and a run repeated from it
prediction                       the best that is known, without measuring
subgraphs                        parts of a program as programs of their own
repeated                         the equal parts of a program
tune_in_turns                    one budget for the tuning passes of a sequence
validation                       whether a program or sequence can be used at all
tuning_pass                      passes that decide by measuring: a loop around a strategy
substitution                     rules that rewrite a program, each at one place
passes                           the tuning passes, one per file

The package is independent of toolchains and loops: joint tuning is one mechanism for all of them.

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from intarsia.support.lazy_names import lazy_names

if TYPE_CHECKING:
    from intarsia.tune.candidates import (
        consider_eval_passes,
        evaluate,
        generate_candidates,
        select_best_candidate,
    )
    from intarsia.tune.choice import Choice
    from intarsia.tune.cost_model import query_cost_model
    from intarsia.tune.evaluator import Evaluation, Evaluator
    from intarsia.tune.heuristic_pass import HeuristicPass
    from intarsia.tune.instruction import Instruction
    from intarsia.tune.measuring_evaluator import MeasuringEvaluator
    from intarsia.tune.prediction import predict
    from intarsia.tune.subgraphs import extract_subgraph
    from intarsia.tune.trace import Trace, get_trace
    from intarsia.tune.transformations import constraint, transformation
    from intarsia.tune.tune_in_turns import TuneInTurns
    from intarsia.tune.tuning_context import TuningContext
    from intarsia.tune.tuning_pass import TuningPass
    from intarsia.tune.validation import validate

_HOMES = {
    "Choice": "intarsia.tune.choice",
    "Evaluation": "intarsia.tune.evaluator",
    "Evaluator": "intarsia.tune.evaluator",
    "HeuristicPass": "intarsia.tune.heuristic_pass",
    "Instruction": "intarsia.tune.instruction",
    "MeasuringEvaluator": "intarsia.tune.measuring_evaluator",
    "Trace": "intarsia.tune.trace",
    "TuneInTurns": "intarsia.tune.tune_in_turns",
    "TuningContext": "intarsia.tune.tuning_context",
    "TuningPass": "intarsia.tune.tuning_pass",
    "consider_eval_passes": "intarsia.tune.candidates",
    "constraint": "intarsia.tune.transformations",
    "evaluate": "intarsia.tune.candidates",
    "extract_subgraph": "intarsia.tune.subgraphs",
    "generate_candidates": "intarsia.tune.candidates",
    "get_trace": "intarsia.tune.trace",
    "predict": "intarsia.tune.prediction",
    "query_cost_model": "intarsia.tune.cost_model",
    "select_best_candidate": "intarsia.tune.candidates",
    "transformation": "intarsia.tune.transformations",
    "validate": "intarsia.tune.validation",
}

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

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
