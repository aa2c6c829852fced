"""Measure schedules on a testbed or replay them from logs, and keep the results.

what is measured, and where
    schedule_measurer      the protocol of PoolMeasurer and ReplayMeasurer
    pool_measurer          schedules as candidates of a testbed (`measure.schedules`)
    callbacks              callbacks called with measurements: OnMeasured, RecordToFile
logs
    record_file, schedule_record, error_numbers
                           measurements as lines of the v0.6 log
    best_records, workload_distance
                           the best records of logs; workloads of other sizes
    replay_measurer        measurements from a log, without hardware
    database_records       measurements in the database
"""

from intarsia.autoschedule.measuring.best_records import (
    DistilledCounts,
    best_of_each,
    best_record,
    distill,
    load_best_record,
)
from intarsia.autoschedule.measuring.callbacks import OnMeasured, RecordToFile
from intarsia.autoschedule.measuring.database_records import ScheduleDatabase
from intarsia.autoschedule.measuring.pool_measurer import SCHEDULE_LIMITS, PoolMeasurer
from intarsia.autoschedule.measuring.record_file import (
    LoadedRecords,
    load_records,
    read_record_file,
    save_records,
)
from intarsia.autoschedule.measuring.replay_measurer import ReplayMeasurer
from intarsia.autoschedule.measuring.schedule_measurer import ScheduleMeasurer
from intarsia.autoschedule.measuring.schedule_record import measurement_of, record_of
from intarsia.autoschedule.measuring.workload_distance import calc_workload_dis_factor

__all__ = [
    "SCHEDULE_LIMITS",
    "DistilledCounts",
    "LoadedRecords",
    "OnMeasured",
    "PoolMeasurer",
    "RecordToFile",
    "ReplayMeasurer",
    "ScheduleDatabase",
    "ScheduleMeasurer",
    "best_of_each",
    "best_record",
    "calc_workload_dis_factor",
    "distill",
    "load_best_record",
    "load_records",
    "measurement_of",
    "read_record_file",
    "record_of",
    "save_records",
]
