"""Measuring schedules: on worker processes, from logs, and where the results are kept.

what is measured
    schedule_measurement   what measuring a schedule has given
    schedule_measurer      who measures: PoolMeasurer, ReplayMeasurer
    callbacks              what happens to measurements: OnMeasured, RecordToFile
on worker processes
    pool_measurer          builds side by side, runs one at a time
    measure_options        how long, how often, with what limits
    prepared_tasks, task_folder, task_contents, reference_result
                           what workers read of a task, and what its kernels have to compute
    schedule_builder, build_schedule, schedule_kernel, code_size
                           from a history to a kernel: the parent's side, the worker's, the compiler's
    schedule_runner, run_schedule, loaded_task, loaded_schedule, run_timing
                           from a kernel to its costs: the parent's side, the worker's
logs
    record_file, schedule_record, error_numbers
                           v0.6 lines and measurements
    best_records, workload_distance
                           the best of logs; workloads of other sizes
    replay_measurer        answers from a log, without hardware
    database_records       the same in the database of all measurements
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
from intarsia.autoschedule.measuring.measure_options import MeasureOptions, RunTiming
from intarsia.autoschedule.measuring.pool_measurer import PoolMeasurer
from intarsia.autoschedule.measuring.record_file import (
    LoadedRecords,
    load_records,
    read_record_file,
    save_records,
)
from intarsia.autoschedule.measuring.replay_measurer import ReplayMeasurer
from intarsia.autoschedule.measuring.schedule_measurement import ScheduleMeasurement
from intarsia.autoschedule.measuring.schedule_measurer import ScheduleMeasurer
from intarsia.autoschedule.measuring.schedule_record import measurement_of, record_of
from intarsia.autoschedule.measuring.workload_distance import calc_workload_dis_factor

__all__ = [
    "DistilledCounts",
    "LoadedRecords",
    "MeasureOptions",
    "OnMeasured",
    "PoolMeasurer",
    "RecordToFile",
    "ReplayMeasurer",
    "RunTiming",
    "ScheduleDatabase",
    "ScheduleMeasurement",
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
