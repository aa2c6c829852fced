"""PyTorch modules that recipes export; they import PyTorch."""
