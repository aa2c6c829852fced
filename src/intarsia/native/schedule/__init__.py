"""Schedules without search: for every DAG a state of its loops by rules, from what the machine has."""

from intarsia.native.schedule.default_schedule import default_state
from intarsia.native.schedule.scheduled import ScheduledDag, scheduled

__all__ = ["ScheduledDag", "default_state", "scheduled"]
