"""Parts of the pass that gives the cache of a decoder a fixed capacity.

attention_parts  the operator Attention as products and a softmax
growing_cache    recognises the parameters and results of the past
split_value      values that consist of a part of the past and a new part
split_products   matrix products with both parts apart, so that they are never joined
length_values    values that count tokens of the past
counted_tokens   decoders for a fixed number of new tokens as those for any number
fixed_cache      the function with a cache of fixed capacity
"""
