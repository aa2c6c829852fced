"""Whole jobs: a model in, the fastest right artifact out.

tune      the public function
entrant   a way to run the whole model
contest   entrants measured one by one, the fast ones raced end to end
records   what became of each, as plain data
result    what `tune` returns
budget    times as people write them
"""

from intarsia.driver.tune import tune

__all__ = ["tune"]
