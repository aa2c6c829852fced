"""Schedules of kernels, a kind of candidate: how workers build, check and time them.

kernel_workload        the computation of a kernel as a workload, and a schedule of it as a candidate
kernel_folder, kernel_contents, reference_result
                       the files of a computation that workers read, with the expected outputs
build_schedule, schedule_kernel, code_size
                       from a history to a kernel: in the worker, the compiler
run_schedule, loaded_task, loaded_schedule
                       from a kernel to its costs, alone or in a race
gpu_schedule_kernel, loaded_gpu_schedule, run_gpu_schedule
                       the same for the GPU of this machine, timed by its events
kernel_timing, run_timing, partial_timing
                       how one is timed within milliseconds, or in part if it is clearly slower than the best
"""
