"""The pass `TuneSchedule` under its earlier name, which installed entry points may still have."""

from intarsia.autoschedule.tuning.tune_schedule import TuneSchedule

__all__ = ["TuneSchedule"]
