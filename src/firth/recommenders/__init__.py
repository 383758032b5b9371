"""Methods for users and items: factorization, item2vec and autoencoders of histories."""
