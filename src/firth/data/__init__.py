"""Data that methods read: corpora, tokenizers, tables, graphs, interactions."""
