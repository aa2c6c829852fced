"""The search for schedules of native kernels (seed ansor_minimum).

    best = tune(task, TuningOptions(200), log=Path("log.json"))    the best schedule on this machine
    scheduled = apply_best(task, "log.json")                       what `lower` compiles, from a log

task         search tasks: a DAG on hardware; workload names
sketch       rules that give the structure of loops, without sizes
population   rules that draw sizes and annotations for a sketch
mutation     small changes of a state
features     features of a loop function for cost models
cost_model   scores of states without measuring
measuring    costs of states, measured on this machine or read from a log
policy       choice of the states of a task that are measured
scheduler    choice of the task that gets the next round
extraction   the tasks of a model
tuning       the search of all kernels of a program within one budget, and the tuning pass TuneSchedule

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from intarsia.support.lazy_names import lazy_names

if TYPE_CHECKING:
    from intarsia.autoschedule.policy import (
        EmptyPolicy,
        PolicyOptions,
        SketchPolicy,
        TuningOptions,
        apply_best,
        print_best,
        tune,
    )
    from intarsia.autoschedule.task import HardwareParams, SearchTask, SpaceOptions, register_workload

_HOMES = {
    "EmptyPolicy": "intarsia.autoschedule.policy",
    "HardwareParams": "intarsia.autoschedule.task",
    "PolicyOptions": "intarsia.autoschedule.policy",
    "SearchTask": "intarsia.autoschedule.task",
    "SketchPolicy": "intarsia.autoschedule.policy",
    "SpaceOptions": "intarsia.autoschedule.task",
    "TuningOptions": "intarsia.autoschedule.policy",
    "apply_best": "intarsia.autoschedule.policy",
    "print_best": "intarsia.autoschedule.policy",
    "register_workload": "intarsia.autoschedule.task",
    "tune": "intarsia.autoschedule.policy",
}

__all__ = [
    "EmptyPolicy",
    "HardwareParams",
    "PolicyOptions",
    "SearchTask",
    "SketchPolicy",
    "SpaceOptions",
    "TuningOptions",
    "apply_best",
    "print_best",
    "register_workload",
    "tune",
]

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
