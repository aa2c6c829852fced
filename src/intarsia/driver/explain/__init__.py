"""Explanations: where the winner runs which operators, and the costs of the alternatives.

explanation, explained_function    plain data stored in the artifact
run, model                         explanation of a run, or of the records of a model in the database
function, comparison               fates of candidates, and their costs beside the winner's
"""
