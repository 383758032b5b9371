"""Methods for graphs: DeepWalk and node2vec."""
