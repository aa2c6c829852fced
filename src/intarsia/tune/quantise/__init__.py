"""Post-training quantisation: scales from data, and precision as a choice for each layer.

calibration_inputs      input sets of a user, from files
program_runner          a program compiled in this process, by the first toolchain that can
observation             ranges, means and histograms of the values that are to be quantised
calibrators             ranges from these: min-max, percentile, entropy, MSE
calibration_record      ranges and means as text
calibrate_quantization  the pass that gives scales to annotations
"""
