"""Searching schedules of the kernels of a program, within one budget, and keeping the best.

tune_schedule      TuneSchedule, the tuning pass: default schedules or the best searched ones
search_seconds     the time of a run that a search may take
schedule_log       the schedule log of the best schedules of a program's kernels, searched or stored
search_schedules   the search of all kernels of a program
kernel_search      the search of one kernel
schedule_history   stored results of this machine
schedule_model     the cost model that all kernels share
schedule_records   progress and results as plain records
"""
