"""Partition rules: each proposes sub-graphs (seed collage_rfc, PartitionRule).

Base rules find candidates in a graph:
df_pattern            what a pattern matches
op_predicate          each call that a toolchain supports
op_call_by_kind       each call that fusion starts from
each_call             each call, for the reference toolchain
host                  what needs no toolchain
in_place              calls that cannot be cut out
segment               large regions (block_item, cut_points, branch_regions)
greedy                the regions of the greedy partitioning

Combinators make candidates of candidates:
composite, primitive  wrapped in a function
union                 of several rules
combine               joined by combiner rules, to a fixpoint (candidate_pool, combiner_rule)
only_valid            those that can become a function

Combiner rules join candidates:
all_simple            pairs that touch, if by_kind or join_anything accepts them
tuple_arg, tuple_proj around tuples
constant              with the constants that are used

must_be_lowered, unit_support
                      what has to be computed by a toolchain, and whether one takes it
rule_limits           how large, and how many
typical_rules         rules put together in the typical ways
registered_rule       rules by name, for targets
"""
