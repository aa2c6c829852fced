"""Post-training quantisation by `tune` beside that of others: `python -m benchmarks.post_training`."""
