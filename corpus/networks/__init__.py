"""PyTorch modules that recipes export; imported where PyTorch is."""
