"""Programs on texts of any length that compute each token by itself, but for attention and pooling.

token_program     such a program in a form whose tokens are items, one behind another
token_operators   operators on tokens in place of what is written by sizes: attention, pooling, views
joined_attention  attention written as products and a softmax as one operator
joined_keys       keys and values that are joined with those of the past, as products read them
score_bias        masks of attention as biases by key
position_table    biases by the position of a key, or by its distance, as tables
token_counts      numbers that depend on the number of tokens
token_neighbours  convolutions over tokens, and tokens that are moved along their text
pooled_weights    weights of tokens by a softmax over their text
row_order         rows of all tokens text by text
pool_call         calls of intarsia::token_pool
token_positions   positions that are counted in masks
token_views       gathers of all tokens in their order as views
token_twins       a program bound to several lengths, and what it computes from the length alone
"""

from intarsia.passes.tokens.token_program import MixedTokensError, TokenProgram, token_program
from intarsia.passes.tokens.token_twins import Past

__all__ = ["MixedTokensError", "Past", "TokenProgram", "token_program"]
