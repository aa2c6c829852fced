"""The second level of the search: placements by what the whole program takes (Collage paper, section 5).

operator_groups     what is placed together
placement_space     placements as genes, a toolchain for each group
evolution           of genes, whatever they stand for
evolve_placements   of placements, by a fitness that measures
"""
