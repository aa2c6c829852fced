"""Loops of a DAG as states, steps from state to state, and their text and log forms (seed ansor_minimum)."""

from intarsia.native.loop_state.attach_map import AttachMap
from intarsia.native.loop_state.illegal_step import IllegalStepError
from intarsia.native.loop_state.iterator import Iterator, IteratorAnnotation, Range
from intarsia.native.loop_state.python_code import print_python_code_from_state
from intarsia.native.loop_state.relation import FuseRelation, Relation, SplitRelation
from intarsia.native.loop_state.schedule_calls import Schedule
from intarsia.native.loop_state.stage import ComputeAt, Stage, StageKind
from intarsia.native.loop_state.state import LoopState
from intarsia.native.loop_state.steps import TransformStep

__all__ = [
    "AttachMap",
    "ComputeAt",
    "FuseRelation",
    "IllegalStepError",
    "Iterator",
    "IteratorAnnotation",
    "LoopState",
    "Range",
    "Relation",
    "Schedule",
    "SplitRelation",
    "Stage",
    "StageKind",
    "TransformStep",
    "print_python_code_from_state",
]
