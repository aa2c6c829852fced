"""Moving transposes, and operators in another layout."""
