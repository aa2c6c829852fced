"""Outputs behind steps: operators with results that jump when an argument changes by a rounding error.

arguments       arguments of steps, and their noise
range_rule, range_check
                Floor, Round, comparisons, Equal, conversions to integers, logic: values on both sides
bounds          the smallest and the largest right value of such results
pick_rule, pick_check
                TopK, ArgMax, ArgMin: selected elements, and values gathered by the indices
selection_rule, selection_check
                NonZero: selected elements, and values gathered there
suppression_rule, suppression_check
                NonMaxSuppression: selected boxes, and values gathered for them
row_axis        results with a row for each selected box
inner_steps     steps within a program: runs in which undecided elements fall on the other side
movement        following a value back through operators that only move it
"""
