"""A function as a graph: numbered expressions, sets of them, and what is known of each.

index_set          sets of nodes, as bit vectors
dataflow_graph     the expressions of a function, numbered inputs first (dataflow_node)
node_kind          fusion kind and label of a node
"""
