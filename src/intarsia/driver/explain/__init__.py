"""Explanations: where the winner runs which operators, and the costs of the alternatives.

run, model                         explanation of a run, or of the records of a model in the database
function, comparison               fates of candidates, and their costs beside the winner's
"""
