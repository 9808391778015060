"""Training on your own photos: a head on cached features, all weights, or a model from scratch."""
