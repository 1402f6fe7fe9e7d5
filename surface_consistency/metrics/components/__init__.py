"""Components of a model: their importance, and similarity of answers by the components they use."""
