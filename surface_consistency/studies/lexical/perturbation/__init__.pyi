from .perturb import perturb_all as perturb_all
from .wordnet import WordNet as WordNet
