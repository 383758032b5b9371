"""Methods that learn by attention: each token becomes a mixture of those that matter to it."""
