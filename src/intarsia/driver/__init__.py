"""Tuning jobs: from a model to its fastest correct executable.

tune      the public function
tune_run  one run: baselines, the pipeline, the race, the result
baselines each toolchain alone
pipeline  the tuning passes of a run as one pass, and its best programs in the contest
machine_bound    how fast a program could be on this machine at best
plans     reading the plan of an earlier run, and writing that of this run
progress  events of a run
result    the result of `tune`
tune_hosts    one run for several kinds of machines
size_variants, dynamic_mode    variants of the winner for the sizes that the user names
lazy_variants    variants that are made while an artifact is used
explain   explanations of a run and of a model
budget    parsing of time budgets
import_model    what `tune` is given, as a program
program_file    programs as text in files, with their constants
program_output  programs in files of all formats
reproducer      programs that make a pass fail
"""

from intarsia.driver.tune import tune

__all__ = ["tune"]
