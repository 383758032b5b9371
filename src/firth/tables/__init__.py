"""Methods for tables: encodings, scaling, PCA and autoencoders."""
