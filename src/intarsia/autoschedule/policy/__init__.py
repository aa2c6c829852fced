"""Searches for schedules of one task (Ansor, section 5; seed ansor_minimum)."""

from intarsia.autoschedule.policy.best_schedule import apply_best, print_best
from intarsia.autoschedule.policy.candidate_scores import CandidateScores
from intarsia.autoschedule.policy.coordinate_descent import CoordinateDescent
from intarsia.autoschedule.policy.empty_policy import EmptyPolicy
from intarsia.autoschedule.policy.evolutionary_search import evolutionary_search
from intarsia.autoschedule.policy.known_records import hints, known_records
from intarsia.autoschedule.policy.measured_states import MeasuredStates
from intarsia.autoschedule.policy.neighbours import neighbours
from intarsia.autoschedule.policy.pick import pick
from intarsia.autoschedule.policy.policy_options import PolicyOptions
from intarsia.autoschedule.policy.sketch_policy import SketchPolicy
from intarsia.autoschedule.policy.tune_task import SearchPolicy, tune, usual_policy
from intarsia.autoschedule.policy.tuning_options import TuningOptions

__all__ = [
    "CandidateScores",
    "CoordinateDescent",
    "EmptyPolicy",
    "MeasuredStates",
    "PolicyOptions",
    "SearchPolicy",
    "SketchPolicy",
    "TuningOptions",
    "apply_best",
    "evolutionary_search",
    "hints",
    "known_records",
    "neighbours",
    "pick",
    "print_best",
    "tune",
    "usual_policy",
]
