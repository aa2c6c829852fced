"""Allocation of measurements to the tasks of a model (seed ansor_minimum)."""

from intarsia.autoschedule.scheduler.restore import restore_from_records
from intarsia.autoschedule.scheduler.scheduler_options import Objective, SchedulerOptions, SchedulingStrategy
from intarsia.autoschedule.scheduler.scheduler_table import SchedulerTable, TaskRow
from intarsia.autoschedule.scheduler.task_progress import TaskProgress
from intarsia.autoschedule.scheduler.task_scheduler import OnRound, TaskScheduler
from intarsia.autoschedule.scheduler.task_tuner import ScheduledTask, TaskTuner

__all__ = [
    "Objective",
    "OnRound",
    "ScheduledTask",
    "SchedulerOptions",
    "SchedulerTable",
    "SchedulingStrategy",
    "TaskProgress",
    "TaskRow",
    "TaskScheduler",
    "TaskTuner",
    "restore_from_records",
]
