"""Small, fast models from large ones."""
