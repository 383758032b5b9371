"""Methods for documents: counts, tf-idf, LSA, Doc2Vec, the fastText classifier."""
