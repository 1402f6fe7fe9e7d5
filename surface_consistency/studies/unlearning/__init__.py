"""Facts taken out of the weights: is what was unlearned or edited still answered, in any form?"""
