"""Graph substitution: sub-graphs replaced by equivalent ones (TASO).

rule                      a pattern, a condition and a replacement; the table of rules
rules                     the rules, a family a file
building, convolution     queries and builders for replacements
dataflow                  the numbered expressions of @main that can be replaced
matching                  where rules match
application               one rule applied at one place
substitute                substitution as a transformation for traces
"""

from intarsia.tune.substitution.application import (
    Substitution,
    apply_replacement,
    find_substitutions,
    replacements,
)
from intarsia.tune.substitution.dataflow import Dataflow
from intarsia.tune.substitution.matching import RuleMatch, find_rule_matches, match_at
from intarsia.tune.substitution.rule import RULES, SubstitutionRule, substitution
from intarsia.tune.substitution.rules import (
    activation_scaling,
    concat_split_motion,
    convolution_kernels,
    convolution_merging,
    elementwise_algebra,
    gemm_conversion,
    matmul_associativity,
    matmul_distribution,
    matmul_merging,
    matmul_transposition,
    padding,
    pooling,
    reductions,
    reshape_motion,
    softmax_motion,
    transpose_motion,
)
from intarsia.tune.substitution.substitute import choice_of, substitute

FAMILIES = (
    elementwise_algebra,
    matmul_associativity,
    matmul_distribution,
    matmul_transposition,
    matmul_merging,
    gemm_conversion,
    convolution_merging,
    convolution_kernels,
    concat_split_motion,
    transpose_motion,
    reshape_motion,
    pooling,
    reductions,
    softmax_motion,
    activation_scaling,
    padding,
)
"""The modules that register the rules when imported."""

__all__ = [
    "FAMILIES",
    "RULES",
    "Dataflow",
    "RuleMatch",
    "Substitution",
    "SubstitutionRule",
    "apply_replacement",
    "choice_of",
    "find_rule_matches",
    "find_substitutions",
    "match_at",
    "replacements",
    "substitute",
    "substitution",
]
