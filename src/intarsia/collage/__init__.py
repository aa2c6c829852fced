"""Collage: which toolchain runs which sub-graph (seed collage_rfc, DESIGN section 7).

index_set            sets of nodes of a graph, as bit vectors
dataflow_graph       the expressions of a function, numbered so that inputs come first (dataflow_node,
                     dataflow_order)
node_kind            fusion kind and label of a node
cost, name_supply    what candidates cost, and names that are not taken
sub_graph            sets of nodes that can become a function; cutting them out, and rewriting with many
partition_rule, partition_spec, candidate_partition
                     who proposes sub-graphs for a target, and what is proposed
rules                the partition rules
search               the covering problem in the abstract: bit masks and numbers

Nothing is imported here, so that the search can be used without the language.
"""
