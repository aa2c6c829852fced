"""Candidates: sub-graphs proposed for a target, and the specs that propose them.

candidate_partition    a sub-graph for a spec, a spec (a target with its rule), and what a rule is
cost                   seconds, or invalid, or unknown
optimize_for           the preamble of a toolchain: passes over the whole program, for its candidates only
"""
