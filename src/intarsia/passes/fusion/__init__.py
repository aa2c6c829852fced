"""Which operators are fused: dataflow per scope, post-dominators, groups.

fusion_graph     who consumes whose value in the same scope, and how
dominator_tree   where all paths of a value meet again
fusion_groups    growing of groups along the tree
"""
