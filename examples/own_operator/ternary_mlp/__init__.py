"""The operator acme::TernaryGatedMLP: a gated MLP whose weights are -1, 0 or 1."""
