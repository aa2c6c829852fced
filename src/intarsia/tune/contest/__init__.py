"""The contest of the candidates for a whole model, which decides what a run returns.

candidate_record    outcome of a candidate
contest             single measurements of all candidates, then a race of the best
entrant             a candidate with its name
"""
