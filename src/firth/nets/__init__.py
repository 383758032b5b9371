"""Networks in torch: the parts, each readable on its own. `import firth` does not load them."""
