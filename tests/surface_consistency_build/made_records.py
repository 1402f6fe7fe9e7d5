"""Rows and records in the formats that the builders write."""

import pytest
from surface_consistency_build.cards.build_records import BuildManifest, SourceFile
from surface_consistency_build.cards.dataset_folder import Subset
from surface_consistency_build.writers.slaq_written import WrittenFact, WrittenTopic

from surface_consistency.data.redirectqa_release import RedirectQARow
from surface_consistency.data.slaq_records import SlaqArticle
from surface_consistency.engine.features import make_features
from surface_consistency.schemas import Entity, FactualTriple, QuestionRealization, SurfaceForm
from surface_consistency.taxonomy import RELATIONS
from tests.made_data import slaq_row


def fact_questions(number, names, *, template="original", question="Where was {} built?", **given):
    """Return the questions of a fact in one template: under the title and under redirects."""
    triple = FactualTriple(
        id=f"f{number}",
        subject=Entity(
            id=f"Q{number}", name=names[0], aliases=given.get("aliases", ()), pageviews=3
        ),
        relation="built",
        object=Entity(id=None, name=given.get("object", "Rome")),
        answers=given.get("answers", ("Rome",)),
    )
    kinds = {"categories": ("Redirects_from_misspellings",), "types": ("typical_errors",)}
    title = SurfaceForm(text=names[0], is_canonical=True)
    redirects = [
        SurfaceForm(text=name, is_canonical=False, redirect_title=name, **kinds)
        for name in names[1:]
    ]
    return [
        QuestionRealization(
            id=f"f{number}:{template}:{surface.text}",
            triple=triple,
            surface=surface,
            template=template,
            question=question.format(surface.text),
        )
        for surface in (title, *redirects)
    ]


PERSON = ["Redirects_from_personal_names", "Redirects_from_misspellings"]
INSTANCES = (
    (1, "place_of_birth", "Cat Stevens", ["__MAIN__"], None),
    (1, "place_of_birth", "NA", ["Redirects_from_pseudonyms"], "NA"),
    (1, "place_of_birth", "Steven D. | Georgiou", PERSON, "Steven_D._Georgiou"),
    (1, "place_of_birth", "cat Stevens", [], "cat_Stevens"),
    (2, "occupation", "Chris Metzen", ["__MAIN__"], None),
)
COLUMNS = "triplet_id relation subject_surface subject_surface_category subject_redirect_wiki_title"


@pytest.fixture
def built_rows():
    """Ten rows: five instances in two templates."""
    rows = []
    for spec in INSTANCES:
        row = dict(zip(COLUMNS.split(), spec, strict=True))
        relation = RELATIONS[row["relation"]]
        row |= {"subject_id": f"Q{row['triplet_id']}", "relation_id": relation.property_id}
        row |= {"subject_wiki_title": "Cat_Stevens", "subject_pageviews": 12, "object_id": "Q84"}
        row |= {"subject_aliases": ("NA", "null"), "object_surface": "London"}
        for template in ("original", "paraphrase"):
            question = relation.question(row["subject_surface"], template=template)
            cells = {"template": template, "question": question, "object_aliases": ("London", "NA")}
            rows.append(RedirectQARow(**row, **cells).model_dump(mode="json"))
    return rows


@pytest.fixture
def manifest():
    """The record of a build."""
    source = {"name": "enwiki-20260101-page.sql.gz", "date": "20260101", "n_bytes": 1234}
    return BuildManifest(
        builder="redirectqa",
        builder_version="1.0.0",
        package_version="0.2.0",
        seed=7,
        options={"triples": 500_000, "wiki": "enwiki"},
        sources=[SourceFile(**source, sha1="ab12")],
    )


@pytest.fixture
def subset(built_rows):
    """Makes a subset of these rows or of given ones."""

    def make(name="v1.0.0", splits=None, **options):
        return Subset(
            name=name,
            splits={"test": built_rows} if splits is None else splits,
            features=make_features(RedirectQARow),
            key=("triplet_id", "subject_surface", "template"),
            **options,
        )

    return make


@pytest.fixture
def written():
    """The generated texts of figure 6 of the SLAQ paper; changes are given by column name."""

    def make(**changes):
        cells = slaq_row(**changes)
        pairs = [(cells[f"ShortQ{k}"], cells[f"ShortA{k}"]) for k in range(1, 6)]
        facts = tuple(WrittenFact(question=question, answer=answer) for question, answer in pairs)
        texts = {"long_question": cells["LongQ"], "long_answer": cells["LongA"]}
        return WrittenTopic(facts=facts, **texts)

    return make


@pytest.fixture
def article():
    """An article that contains figure 6."""
    cells = slaq_row()
    text = " ".join(str(cells[name]) for name in ("LongA", *(f"ShortA{k}" for k in range(1, 6))))
    given = {"title": "The Punic Wars", "category": "History", "text": text}
    return SlaqArticle(**given, url=cells["URL"], pageviews=12)
