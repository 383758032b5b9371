"""Vectors by counting."""
