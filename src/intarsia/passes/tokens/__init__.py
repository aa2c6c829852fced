"""Programs on texts of any length that compute each token by itself, but for attention.

token_program     such a program in a form whose tokens are items, one behind another
joined_attention  attention written as products and a softmax becomes one operator
score_bias        masks of attention as biases by key
token_twins       a program bound to several lengths, and what it computes from the length alone
"""

from intarsia.passes.tokens.token_program import MixedTokensError, TokenProgram, token_program

__all__ = ["MixedTokensError", "TokenProgram", "token_program"]
