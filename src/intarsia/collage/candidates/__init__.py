"""Who proposes sub-graphs for a target, and what is proposed.

candidate_partition    a sub-graph for a spec, a spec (a target with its rule), and what a rule is
cost                   seconds, or invalid, or unknown
optimize_for           what a toolchain wants done to the whole program first
"""
