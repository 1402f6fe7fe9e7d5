"""The reader of WordNet's files, with small files and compared with nltk on the real ones."""

import importlib.util
import random
import shutil
from pathlib import Path

import pytest

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.studies.lexical.perturbation import WordNet

FILES = Path(__file__).parent / "wordnet"
PARTS = {"noun": "n", "verb": "v", "adjective": "a", "adverb": "r"}


def test_files_equal_the_output_of_their_maker():
    spec = importlib.util.spec_from_file_location("make_wordnet", FILES.parent / "make_wordnet.py")
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    made = maker.files()
    assert sorted(made) == sorted(path.name for path in FILES.iterdir())
    for name, content in made.items():
        assert (FILES / name).read_text(encoding="utf-8") == content


def test_senses_are_in_order_with_words_as_written(lexicon):
    tame, fellow = lexicon.synsets("Dog", "noun")
    assert tame.lemmas == ("hound", "dog", "Canis familiaris")
    assert tame.definition == "a tame animal that barks"
    assert fellow.lemmas == ("fellow", "dog")
    assert lexicon.synsets("dog", "verb") == ()
    assert lexicon.synsets("canis familiaris", "noun") == (tame,)


def test_satellites_and_syntactic_markers_are_read(lexicon):
    (huge,) = lexicon.synsets("huge", "adjective")
    assert (huge.lemmas, huge.id[-2:]) == (("huge", "immense"), "-s")
    (asleep,) = lexicon.synsets("asleep", "adjective")
    assert asleep.lemmas == ("asleep",)
    assert lexicon.sense_count("huge", "adjective") == 7


@pytest.mark.parametrize(
    ("form", "pos", "expected"),
    [
        *(("Dogs", "noun", "dog"), ("stories", "noun", "story"), ("children", "noun", "child")),
        *(("chosen", "verb", "choose"), ("using", "verb", "use"), ("utilised", "verb", "utilise")),
        *(("hung up", "verb", "hang up"), ("biggest", "adjective", "big")),
        *(("dogss", "noun", None), ("s", "noun", None), ("nothing", "noun", None)),
    ],
)
def test_base_forms_of_inflected_words(lexicon, form, pos, expected):
    assert lexicon.base_forms(form, pos) == ((expected,) if expected else ())


def test_counts_are_of_the_most_frequent_sense_of_a_part_of_speech(lexicon):
    counts = {("dog", "noun"): 42, ("use", "verb"): 114, ("use", "noun"): 40, ("apple", "noun"): 0}

    assert {key: lexicon.sense_count(*key) for key in counts} == counts


def test_word_that_no_tagged_corpus_contains_is_found(tmp_path):
    folder = tmp_path / "w"
    shutil.copytree(FILES, folder)
    (folder / "cntlist.rev").unlink()
    index = folder / "index.noun"
    index.write_text(index.read_text().replace("apple n 1 1 @ 1 1 ", "apple n 1 1 @ 1 0 "))
    lexicon = WordNet(folder)

    assert lexicon.synsets("apple", "noun")
    assert (lexicon.sense_count("apple", "noun"), lexicon.sense_count("dog", "noun")) == (0, 1)


def test_errors_name_missing_and_invalid_files(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"lacks index\.noun, .*wordnet-base"):
        WordNet(tmp_path)
    folder = tmp_path / "w"
    shutil.copytree(FILES, folder)
    data = (folder / "data.noun").read_bytes()
    (folder / "data.noun").write_bytes(data.replace(b"\n", b"\r\n"))
    with pytest.raises(DataError, match=r"data\.noun: no synset begins at byte \d+, to which"):
        WordNet(folder).synsets("dog", "noun")
    index = (folder / "index.verb").read_text().replace("use v 1 1 @ 1 1", "use v x 1 @ 1 1")
    (folder / "index.verb").write_text(index)
    with pytest.raises(DataError, match=r"index\.verb: the line of 'use' is not an index line"):
        WordNet(folder).synsets("use", "verb")
    (folder / "verb.exc").write_text("chose\n")
    with pytest.raises(DataError, match=r"verb\.exc: 'chose' has no base form"):
        WordNet(folder)


@pytest.fixture(scope="module")
def nltk_wordnet(wordnet, tmp_path_factory):
    nltk = pytest.importorskip("nltk")
    root = tmp_path_factory.mktemp("nltk_data")
    folder = root / "corpora" / "wordnet"
    shutil.copytree(wordnet.folder, folder, ignore=shutil.ignore_patterns("bin", "pixmaps"))
    names = ["adj.all", "adj.pert", "adv.all", "noun.Tops", "noun.act"]
    names += [f"made.up{number}" for number in range(len(names), 45)]
    lines = [f"{number:02d}\t{name}\t1\n" for number, name in enumerate(names)]
    (folder / "lexnames").write_text("".join(lines))
    (folder / "index.sense").touch()
    nltk.data.path.insert(0, str(root))
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    yield WordNetCorpusReader(nltk.data.FileSystemPathPointer(str(folder)), None)
    nltk.data.path.remove(str(root))


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_equals_nltk_on_the_real_files(wordnet, nltk_wordnet):
    rng, n_more = random.Random(0), 0
    for pos, letter in PARTS.items():
        lemmas = sorted(nltk_wordnet.all_lemma_names(pos=letter))
        for lemma in rng.sample(lemmas, 200):
            theirs = nltk_wordnet.synsets(lemma, pos=letter)
            ours = wordnet.synsets(lemma, pos)
            assert [synset.id for synset in ours] == [f"{s.offset():08d}-{s.pos()}" for s in theirs]
            for our, their in zip(ours, theirs, strict=True):
                assert [name.replace(" ", "_") for name in our.lemmas] == their.lemma_names()
            seen = [
                item.count()
                for synset in theirs
                for item in synset.lemmas()
                if item.name().lower() == lemma
            ]
            # A few lines of the published counts are for senses that no longer have words.
            n_more += wordnet.sense_count(lemma, pos) > max(seen)
            assert wordnet.sense_count(lemma, pos) >= max(seen)
            for form in (lemma, f"{lemma}s", f"{lemma}ed", f"{lemma}ing"):
                if form.endswith("ss"):
                    continue  # WordNet's own morphy knows no plural in "ss"; nltk takes an s off.
                theirs_of_form = nltk_wordnet._morphy(form, letter)
                base = [item.replace(" ", "_") for item in wordnet.base_forms(form, pos)]
                assert set(theirs_of_form[:1]) <= set(base), (form, theirs_of_form, base)
    assert n_more < 8
