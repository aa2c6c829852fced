"""Executables and artifacts (DESIGN section 10). Imports no compiler and no toolchain.

kernel, plan             the contracts: what toolchains hand over, and what is run in which order
executable               the program that runs
straight_line, buffers   programs without branches, from one arena
interpreter              branches and calls of blocks
devices                  several devices in one program: what they are, and the runners of such plans
timeline, profile        when each step of a run began and ended; where the time goes
artifact_save, _load     an executable on disk
"""
