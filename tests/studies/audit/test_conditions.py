import shutil
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surface_consistency.errors import DataError, DataWarning, SourceNotFoundError
from surface_consistency.studies.audit import AuditData, AuditSettings, find_conditions
from surface_consistency.studies.audit.conditions import condition_label
from surface_consistency.studies.audit.plan import plan_audit
from surface_consistency.studies.audit.retrieval.verification import database_coverage
from surface_consistency.studies.audit.stores import retrievers_by_name


def fit_of(condition):
    """Count the prompts that the database of a condition can answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return database_coverage(condition.database, condition.prompts, max_missing=1.0)


def test_find_conditions_pairs_every_database_with_its_prompts(databases):
    conditions = find_conditions(databases)

    assert [(one.label.database, one.label.style, len(one.prompts)) for one in conditions] == [
        ("lands/base", "direct_questions", 12),
        ("lands/base", "cloze", 12),
        ("lands/noise", "direct_questions", 14),
        ("lands/noise", "cloze", 14),
    ]
    assert conditions[0].database is conditions[1].database
    assert conditions[0].prompt_file == "lands/prompts/base/prompts_direct_questions.jsonl"
    assert conditions[2].database_file == "lands/noise.json"


def test_find_conditions_reads_a_database_with_its_own_prompts(databases, tmp_path):
    """The layout of the released database; one folder contains both layouts."""
    single = databases / "released_database"
    shutil.copytree(databases / "lands" / "prompts" / "base", single / "prompts")
    shutil.copy(databases / "lands" / "base.json", single / "lmlm_database.json")

    together, alone = find_conditions(databases), find_conditions(single / "lmlm_database.json")

    assert {one.label.database for one in together} == {"lands/base", "lands/noise", "released"}
    assert [one.label.database for one in alone] == ["released", "released"]
    assert alone[0].prompt_file == "prompts/prompts_direct_questions.jsonl"


def test_find_conditions_reads_the_published_grid(data_files):
    """Thirteen databases, six styles, 12,228 prompts (arXiv 2607.00605, section 5)."""
    conditions = find_conditions(data_files / "lmlm_audit" / "data")

    assert len(conditions) == 78
    assert len({one.label.database for one in conditions}) == 13
    assert sum(len(one.prompts) for one in conditions) == 12_228
    fits = map(fit_of, conditions)
    assert all(fit["n_verbatim"] == fit["n_prompts"] for fit in fits)


def test_limited_keeps_the_first_prompts_and_counts_only_their_fit(databases):
    """Two of fourteen facts are the decoys, which the base database lacks."""
    shutil.copy(databases / "lands" / "base.json", databases / "lands" / "noise.json")
    with pytest.warns(DataWarning, match="2 of 14 prompts are about facts"):
        (noise,) = find_conditions(databases, topologies=["noise"], styles=["cloze"])
    assert (noise.label.database, fit_of(noise)["n_missing"]) == ("lands/noise", 2)

    first = noise.limited(3)

    assert first.prompts == noise.prompts[:3]
    assert (fit_of(first)["n_prompts"], fit_of(first)["n_missing"]) == (3, 0)
    assert noise.limited(14) is noise.limited(None) is noise


def rename(databases):
    file = databases / "lands" / "base.json"
    file.write_text(file.read_text().replace("ia", "ya").replace("Beldova", "Beldavo"))


def copy_all(databases):
    shutil.copytree(databases / "lands", databases / "copy" / "lands")


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        (None, {"styles": ["haiku"]}, DataError, "no style haiku; there are cloze, direct_quest"),
        (None, {"domains": ["seas"]}, DataError, "no domain seas; there are lands"),
        (None, {"topologies": ["alias"]}, DataError, "no topology alias; there are base, noise"),
        (None, {"max_missing": 2}, ValueError, "max_missing is a proportion"),
        (rename, {}, DataError, r"prompts_direct_questions\.jsonl: .*another database"),
        (copy_all, {}, DataError, "both the database lands/base"),
        (shutil.rmtree, {}, SourceNotFoundError, "database file or folder .* not found"),
        (
            lambda databases: shutil.rmtree(databases / "lands"),
            {},
            SourceNotFoundError,
            "contains no database with prompts",
        ),
    ],
)
def test_find_conditions_rejects_unknown_or_mixed_files(databases, change, options, error, message):
    if change is not None:
        change(databases)

    with pytest.raises(error, match=message):
        find_conditions(databases, **options)


@pytest.mark.parametrize("path", ["prompts_cloze.jsonl", "a/b/cloze.jsonl", "a/prompts_.jsonl"])
def test_condition_label_rejects_other_paths(path):
    with pytest.raises(DataError, match="is not a prompt file of an audit"):
        condition_label(path)


def test_find_conditions_reads_parquet_like_json(databases, tmp_path, capsys):
    """A folder and a file; their plans and their missing facts are the same."""
    (read, *_) = find_conditions(databases, topologies=["base"], styles=["cloze"])
    table = pa.table(
        dict(zip(("head", "relation", "tail"), zip(*read.database, strict=True), strict=True))
    )
    file = databases / "lands" / "base.parquet"
    pq.write_table(table, file)

    with pytest.raises(DataError, match=r"base\.parquet and .*base\.json are both the database"):
        find_conditions(databases)
    (databases / "lands" / "base.json").unlink()
    mapped = [
        find_conditions(root, topologies=["base"], styles=["cloze"])[0]
        for root in (databases, file)
    ]

    assert capsys.readouterr().err.count("indexing the triplets") == 1
    # Two styles use the same mapped database.
    (other, *_) = [one for one in find_conditions(file) if one.label != mapped[0].label]
    settings = AuditSettings(retriever=("fuzzy",))

    def plan(*conditions, chosen=settings):
        data = AuditData(id="here", conditions=conditions)
        return plan_audit(data, chosen, retrievers_by_name("fuzzy"))

    assert len(plan(mapped[0], other).checks["databases"]) == 1
    for one in mapped:
        assert (one.label, one.prompts, fit_of(one)) == (read.label, read.prompts, fit_of(read))
        assert one.database_file.endswith("base.parquet")
        for chosen in (settings, settings.model_copy(update={"canonical": True})):
            ours, theirs = plan(one, chosen=chosen), plan(read, chosen=chosen)
            columns = ["database_file", "prompt_file"]
            assert ours.items.drop(columns=columns).equals(theirs.items.drop(columns=columns))
            assert ours.data.digest == theirs.data.digest
            assert ours.checks["closure"].equals(theirs.checks["closure"])
