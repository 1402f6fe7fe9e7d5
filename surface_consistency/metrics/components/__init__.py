"""Components of a model: importance, similarity, prediction."""
