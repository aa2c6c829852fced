"""Measure schedules on worker processes or replay them from logs, and keep the results.

what is measured
    schedule_measurement   result of measuring a schedule
    schedule_measurer      the protocol of PoolMeasurer and ReplayMeasurer
    callbacks              callbacks called with measurements: OnMeasured, RecordToFile
on worker processes
    pool_measurer          builds in parallel, runs one at a time
    measure_options        durations, sample counts and limits
    prepared_tasks, task_folder, task_contents, reference_result
                           files of a task that workers read, with the expected outputs
    schedule_builder, build_schedule, schedule_kernel, code_size
                           from a history to a kernel: in the parent process, the worker, the compiler
    schedule_runner, run_schedule, loaded_task, loaded_schedule, run_timing
                           from a kernel to its costs: in the parent process, the worker
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
