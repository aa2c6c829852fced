"""Races: candidates that stay loaded are timed interleaved until one is proven the fastest.

racing      the race itself, on any clock
sign_test   the test that proves one candidate faster
policy      required confidence, equivalence margin, cost limits
limits      when a race is stopped from outside
result      samples, dropouts and the winner
"""
