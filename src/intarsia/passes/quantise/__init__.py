"""What the passes of quantisation share.

heavy_layer     convolutions and products with constant weights, which are computed in integers
integer_values  which values a quantised program computes in integers, and where scales are needed
realized_layer  weights and biases as integers
absorbed_activation
                activations that the range of integers computes
"""
