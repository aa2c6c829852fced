"""Schedules of DAGs: loop states by rules for the machine, or from a search."""

from intarsia.native.schedule.default_schedule import default_state
from intarsia.native.schedule.schedule_log import ScheduleLog
from intarsia.native.schedule.scheduled import ScheduledDag, scheduled, with_state

__all__ = ["ScheduleLog", "ScheduledDag", "default_state", "scheduled", "with_state"]
