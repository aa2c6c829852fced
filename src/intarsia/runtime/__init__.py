"""Executables and artifacts (DESIGN section 10). Imports no compiler and no toolchain.

kernel, plan             the interfaces: compiled kernels of toolchains, and the execution plan
executable               the program that runs
straight_line, buffers   programs without branches, from one arena
interpreter              programs with branches and calls of blocks
devices                  several devices in one program, and the runners of their plans
timeline, chrome_trace   start and end of each step of a run; traces for Perfetto
kernel_profiler          the interface of toolchains that time the kernels inside their engines
profiling_runs, profile  runs under these profilers; the time of each kernel
artifact_save, _load     an executable on disk
"""
