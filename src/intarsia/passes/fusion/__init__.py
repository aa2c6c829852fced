"""Which operators are fused: dataflow per scope, post-dominators, groups.

fusion_graph     consumers of each value in the same scope, and the kinds of use
dominator_tree   where all paths of a value meet again
fusion_groups    growing of groups along the tree
"""
