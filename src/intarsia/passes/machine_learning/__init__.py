"""Operators of ai.onnx.ml by ONNX's own, for `DecomposeMl`.

ml_call         what a rule is given, and what it raises for a form that it leaves alone
features        scaling, imputing, encoding and picking columns
linear          linear models
post_transform  from scores to probabilities
tree_tables     trees of both spellings as arrays; tree_ensembles: what they are used for
"""
