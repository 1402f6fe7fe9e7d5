"""Tags, forms, senses and the replacement of words."""

import json
import re
from types import SimpleNamespace

import pytest

from surface_consistency.errors import DataError, RecordError
from surface_consistency.schemas import Generation
from surface_consistency.studies.lexical.perturbation import perturb_all
from surface_consistency.studies.lexical.perturbation.senses import (
    FirstSense,
    JudgedSense,
    SenseQuestion,
    StoredSense,
    write_senses,
)
from surface_consistency.studies.lexical.perturbation.tagging import (
    Word,
    WordNetTagger,
    lemminflect_inflector,
)
from surface_consistency.studies.lexical.records import BenchmarkInstance


def instance(*options, context="", correct=0, name="1"):
    return BenchmarkInstance(
        id=name, task="t", kind="formal", context=context, options=options, correct=correct
    )


def perturb(one, draw=0, **options):
    """Return one draw of one instance."""
    (made,) = perturb_all([one], draws=(draw,), **options)
    return made


@pytest.mark.parametrize(
    "expected",
    [
        *(
            "The/X dogs/NNS",
            "They/X use/VB it/X",
            "the/X use/NN",
            "to/X story/VB",
            "He/X chose/VBD",
        ),
        *("was/AUX not/X chosen/VBN", "can/MD be/AUX using/VBG", "he/X uses/VBZ", "quickly/RB"),
        *("Ann/NNP and/X Dog/NNP", "Dogs/NNS. Apples/NNS", "Zyx/NNP doesn't", "huge/JJ dog/NN's"),
        "",
    ],
)
def test_words_have_the_expected_part_of_speech_tags(lexicon, expected):
    text = re.sub("/[A-Z]+", "", expected)
    found = text
    for word in WordNetTagger(lexicon).tag(text)[::-1]:
        found = f"{found[: word.end]}/{word.tag}{found[word.end :]}"

    assert found == expected


FORMS = """
write VBZ writes, write VBG writing, write VBD wrote, write VBN written, Write VBD Wrote,
woman NNS women, WOMAN NNS WOMEN, café NNS cafés, 東京 NNS 東京s, zyxgrob NNS zyxgrobs, - NNS -s,
123 VBZ 123s, write VB write, dog NN dog, huge JJ huge"""
KNOWN = {(lemma, tag): form for lemma, tag, form in map(str.split, FORMS.split(","))}
KNOWN |= {("take place", "VBN"): "taken place", ("hang up", "VBD"): "hung up"}
KNOWN |= {("hot dog", "NNS"): "hot dogs", ("a\tb", "NNS"): "a bs", (" dog ", "NNS"): "dogs"}
KNOWN |= dict.fromkeys([("dog", "NNP"), ("dog", "X"), ("dog", ""), (" ", "VBD"), ("", "NNS")])


def test_inflected_forms_of_lemmas():
    """Irregular forms are those of lemminflect."""
    inflect = lemminflect_inflector()

    assert {key: inflect(*key) for key in KNOWN} == KNOWN


def test_custom_inflector_is_used(lexicon):
    slash = "{}/{}".format
    made = perturb(instance("dogs", "x"), lexicon=lexicon, inflect=slash)
    assert made.instance.options[0] == "hound/NNS"


TEXT = "They choose a story of huge dogs."


@pytest.mark.parametrize(
    ("options", "expected", "settings"),
    [
        # Names, auxiliaries and synonyms of several words are not replaced.
        (("Ann does suspend an apple.", "Ann was here"), ("Ann does suspend an apple.",), {}),
        (("She suspended it.", "No"), ("She hung up it.",), {"multi_word": True}),
        # A noun of two letters is mostly a unit.
        (("an hour", "no"), ("an hour", "no"), {}),
        # Articles are adapted to the first letter.
        (("A crime and an enrolment.", "x"), ("An offense and a registration.",), {}),
        # The same synonyms are used in both options, in all forms.
        (("These dogs.", "These dog."), ("These hounds.", "These hound."), {"seed": 3}),
        ((TEXT, "x"), ("They choose a history of huge hounds.",), {"pos": ("noun",)}),
        ((TEXT, "x"), ("They choose a story of immense dogs.",), {"pos": ("adjective",)}),
    ],
)
def test_words_are_replaced_by_synonyms(lexicon, options, expected, settings):
    made = perturb(instance(*options), lexicon=lexicon, **settings)

    assert made.instance.options[: len(expected)] == expected
    assert bool(made.edits) == (made.instance.options != options)


def test_edit_contains_position_form_and_lemmas(lexicon):
    made = perturb(instance("Stories were chosen.", "x"), lexicon=lexicon)

    assert made.instance.options[0] == "Histories were selected."
    first, second = made.edits
    assert (first.part, first.start) == (1, 0)
    assert (first.original, first.replacement) == ("Stories", "Histories")
    assert (second.lemma, second.synonym, second.pos) == ("choose", "select", "verb")
    assert made.instance.id == "1"


def test_a_pair_with_a_word_of_one_option_replaced_is_broken(lexicon):
    made = perturb(instance("He chose it.", "He was it."), lexicon=lexicon)
    assert made.is_broken
    assert not perturb(instance("He chose it."), lexicon=lexicon, targets=True).is_broken
    assert not perturb(instance("These dogs.", "These dog."), lexicon=lexicon).is_broken


def test_options_do_not_become_equal(lexicon):
    pair = instance("the dog", "the hound", context="a story")
    for seed in range(8):
        made = perturb(pair, lexicon=lexicon, seed=seed)
        assert len(set(made.instance.options)) == 2
    swapped = perturb(instance("a dog sat", "a fellow sat"), lexicon=lexicon)
    assert len(set(swapped.instance.options)) == 2


def test_words_to_predict_are_replaced_only_with_targets(lexicon):
    one = instance("dog", context="He chose a")
    assert perturb(one, lexicon=lexicon).instance.options == ("dog",)
    assert perturb(one, lexicon=lexicon, targets=True).instance.options == ("hound",)


def test_draws_differ_from_each_other_and_repeat_for_a_seed(lexicon):
    sentences = [instance(f"They use it {number}.", "x", name=str(number)) for number in range(20)]

    def words(**options):
        made = perturb_all(sentences, lexicon=lexicon, **options)
        return [(item.draw, item.instance.options[0].split()[1]) for item in made]

    drawn = words(draws=(0, 1))
    assert {word for _, word in drawn} == {"utilise", "employ"}
    assert [draw for draw, _ in drawn] == [0, 1] * 20
    assert words(draws=(0, 1)) == drawn
    assert words(draws=(0,), seed=1) != [item for item in drawn if item[0] == 0]
    assert [item for item in drawn if item[0] == 1] == words(draws=(1,))
    kept = words(may_keep=True, draws=range(3))
    assert {word for _, word in kept} == {"use", "utilise", "employ"}
    half = words(share=0.5, draws=range(10))
    assert 60 < sum(word == "use" for _, word in half) < 140
    with pytest.raises(ValueError, match="share must be above 0 and at most 1, got 0"):
        words(share=0.0)


def test_custom_tagger_is_used(lexicon):
    dogs = SimpleNamespace(tag=lambda text: [Word(start=0, end=len(text), lemma="dog", tag="NNS")])
    made = perturb(instance("hunde", "katze"), lexicon=lexicon, tagger=dogs)
    # Both would be hounds, so the options are not replaced.
    assert made.instance.options == ("hunde", "katze")
    made = perturb(instance("x", "y", context="hunde"), lexicon=lexicon, tagger=dogs)
    assert made.instance.context == "hounds"


def test_senses_are_stored_and_read_again(lexicon, tmp_path):
    text = "the dog"
    question = SenseQuestion(text=text, start=4, end=7, synsets=lexicon.synsets("dog", "noun"))
    path = tmp_path / "senses.jsonl"
    write_senses([question], [question.synsets[1]], path)
    made = perturb(instance(text, "the apple"), lexicon=lexicon, senses=StoredSense(path))
    assert made.instance.options[0] == "the fellow"
    assert StoredSense(path).choose([question]) == [question.synsets[1]]
    # Words without a stored sense are not replaced.
    assert perturb(instance("a dog", "b"), lexicon=lexicon, senses=StoredSense(path)).edits == ()
    for row, error, match in (
        ({"start": 4, "synset": "00000001-n"}, DataError, "00000001-n is not a sense of 'dog' in"),
        ({"start": "4"}, RecordError, r"senses\.jsonl:1: a sense must have text, start"),
    ):
        path.write_text(json.dumps({"text": text} | row) + "\n")
        with pytest.raises(error, match=match):
            StoredSense(path).choose([question])


def test_model_chooses_senses_by_multiple_choice(lexicon):
    asked = []

    def generate(prompts, params):
        for prompt in prompts:
            asked.append(prompt)
            answer = "fellow" if "what?" in prompt.text else " 2."
            yield Generation(prompt_id=prompt.id, text=answer)

    judge = JudgedSense(SimpleNamespace(generate=generate))
    sentences = [instance("the dog", "x", name=str(number)) for number in range(3)]
    sentences += [instance("the dog what?", "an apple", name="3")]
    made = list(perturb_all(sentences, lexicon=lexicon, senses=judge))
    assert [item.instance.options[0] for item in made] == ["the fellow"] * 3 + ["the dog what?"]
    assert len(asked) == 2
    assert asked[0].options == (" 1", " 2")
    assert "1. a tame animal that barks\n2. a man, said in jest" in asked[0].text
    assert judge.n_unclear == 1


def test_chooser_that_returns_too_few_senses_raises_an_error(lexicon):
    short = SimpleNamespace(choose=lambda questions: [])
    with pytest.raises(ValueError, match="one sense per question, got 0 for 1"):
        perturb(instance("dog", "x"), lexicon=lexicon, senses=short)


def test_drawn_synonyms_include_those_of_the_paper(wordnet):
    for text, word in (
        ("He committed a crime.", "perpetrated"),
        ("The registration is closed.", "enrollment"),
        ("They choose a card.", "select"),
        ("They use a card.", "utilise"),
    ):
        drawn = set()
        for draw in range(30):
            made = perturb(instance(text, "x"), lexicon=wordnet, senses=FirstSense(), draw=draw)
            drawn |= {edit.replacement for edit in made.edits}
        assert word in drawn
