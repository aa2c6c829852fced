"""Timing of calls.

timing             repeats of a call until the limits of a policy are met
interleaved        several calls timed in rounds, so that drift hits all alike
clock, cache_flush the clock; caches emptied before a call
median_interval    confidence interval of a median
noise, noise_verdict, system_load, host_lock
                   noise of this machine, other load on it, and a lock against measuring twice at once
"""
