"""Executables and artifacts (DESIGN section 10). Imports no compiler and no toolchain.

kernel, plan             the interfaces: compiled kernels of toolchains, and the execution plan
executable               the program that runs
straight_line, buffers   programs without branches, from one arena
interpreter              programs with branches and calls of blocks
devices                  several devices in one program, and the runners of their plans
timeline, profile        start and end of each step of a run; time by kernel
artifact_save, _load     an executable on disk
"""
