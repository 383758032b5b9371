"""Networks that attend."""
