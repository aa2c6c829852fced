"""Programs in narrower types."""
