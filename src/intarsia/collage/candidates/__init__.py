"""Who proposes sub-graphs for a target, and what is proposed.

partition_rule         what proposes
partition_spec         a rule with the target that it proposes for
candidate_partition    a sub-graph for a spec, with its cost
cost                   seconds, or invalid, or unknown
optimize_for           what a toolchain wants done to the whole program first
"""
