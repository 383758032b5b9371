"""Rows through few numbers and back."""
