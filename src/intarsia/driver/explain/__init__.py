"""Explanations: why the winner runs what where, and what the alternatives would cost.

explanation, explained_function    plain data stored in the artifact
run, model                         explain a run, or what the database contains of a model
function, comparison               fates of candidates, and their costs beside the winner's
"""
