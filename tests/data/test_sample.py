import subprocess
import sys

import datasets

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.sample import SAMPLE_PATH, load_sample
from surface_consistency.taxonomy import CATEGORIES, RELATIONS


def test_sample_covers_the_vocabulary():
    """At least 60 facts over all relations, 1 to 4 redirects each, all categories present."""
    data = load_sample()
    facts = {question.triple.id: question.triple for question in data.questions}
    redirects = {
        fact: {
            pair.redirect.surface
            for pair in data.pairs
            if pair.redirect.triple.id == fact and pair.redirect.template == "original"
        }
        for fact in facts
    }

    assert len(facts) >= 60
    assert {triple.relation for triple in facts.values()} == set(RELATIONS)
    assert all(1 <= len(surfaces) <= 4 for surfaces in redirects.values())
    labels = {label for pair in data.pairs for label in pair.redirect.surface.categories}
    assert labels == set(CATEGORIES)
    assert all(triple.answers for triple in facts.values())
    assert data.unpaired == ()


def test_sample_is_a_folder_in_the_hubs_layout(tmp_path):
    """`load_dataset` reads the folder, and both ways give the same data without a warning."""
    loaded = datasets.load_dataset(str(SAMPLE_PATH), split="test", cache_dir=str(tmp_path))

    digests = {
        data.source.digest
        for data in (load_sample(), load_redirectqa(SAMPLE_PATH), load_redirectqa(loaded))
    }

    assert len(digests) == 1


def test_sample_has_a_name_of_its_own():
    """A manifest names the sample alike on every machine."""
    source = load_sample().source

    assert source.id == "redirectqa-sample"
    assert source.n_questions == len(load_sample().questions)


def test_load_sample_needs_no_heavy_library():
    """The sample loads without datasets, pyarrow, pandas or the hub's client."""
    code = (
        "import sys; from surface_consistency.data.sample import load_sample; load_sample(); "
        "print([name for name in ('datasets', 'pyarrow', 'pandas', 'huggingface_hub') "
        "if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
