"""Post-training quantisation: scales from data, and precision as a choice for each layer.

calibration_inputs      input sets of a user, from files
program_runner          a program compiled in this process, by the first toolchain that can
observation             ranges, means and histograms of the values that are to be quantised
calibrators             ranges from these: min-max, percentile, entropy, MSE
calibration_record      ranges and means as text
calibrate_quantization  the pass that gives scales to annotations
smooth_activations      the pass that moves ranges of activations into weights
rewrites                equalised layers and smoothed activations before quantisation
quantised               programs in integers as a transformation
output_error            errors of a program against float32, and metrics
layer_errors, layer_times
                        the error and the times of each layer alone
precision_problem       the fastest choice of layers within a budget of errors
layer_choice            choices that are measured, and made again where predictions were wrong
"""
