"""Tuning jobs: from a model to its fastest correct executable.

tune      the public function
baselines each toolchain alone
partition the search for partitions, on both levels
evolve    the second level: the whole model's latency as fitness
booked_targets   native with searched schedules (autoschedule.tuning) as one more candidate
plans     reading the plan of an earlier run, and writing that of this run
entrant   a candidate for the whole model
contest   measurement of all candidates, and the end-to-end race of the fast ones
records   results of candidates as plain data
result    the result of `tune`
explain   explanations of a run, of a model, and in the artifact
budget    parsing of time budgets
"""

from intarsia.driver.tune import tune

__all__ = ["tune"]
