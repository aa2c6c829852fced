"""Whole jobs: a model in, the fastest right artifact out.

tune      the public function
baselines each toolchain alone
partition the search for partitions, on both levels
evolve    the second level: the whole model's latency as fitness
booked_targets   native with searched schedules as one more toolchain
schedules        the search of all kernels' schedules; kernel_search: of one; schedule_allowance: how long
schedule_history, schedule_model   what was found before, and what the cost model has learned
schedule_records   what was found, as plain data
tune_schedule      searched schedules as a decision of a tuning pass
plans     what an earlier run has found, and keeping what this one finds
entrant   a way to run the whole model
contest   entrants measured one by one, the fast ones raced end to end
records   what became of each, as plain data
result    what `tune` returns
explain   why the winner runs what where: in the artifact, of a run, of a model
budget    times as people write them
"""

from intarsia.driver.tune import tune

__all__ = ["tune"]
