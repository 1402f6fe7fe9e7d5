from .frequencies import (
    WordFrequency as WordFrequency,
    corpus_frequencies as corpus_frequencies,
    match_frequency as match_frequency,
    read_word_counts as read_word_counts,
)
from .perturb import (
    candidate_synonyms as candidate_synonyms,
    perturb_all as perturb_all,
)
from .senses import (
    FirstSense as FirstSense,
    JudgedSense as JudgedSense,
    SenseChooser as SenseChooser,
    SenseQuestion as SenseQuestion,
    StoredSense as StoredSense,
    write_senses as write_senses,
)
from .tagging import (
    Inflector as Inflector,
    Tagger as Tagger,
    Word as Word,
    WordNetTagger as WordNetTagger,
    lemminflect_inflector as lemminflect_inflector,
)
from .wordnet import (
    Synset as Synset,
    WordNet as WordNet,
)
