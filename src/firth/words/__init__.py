"""Methods for words: skip-gram, CBOW, fastText, GloVe, PMI."""
