import json
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from surface_consistency_build.wikimedia.construction import (
    BuiltRow,
    attrition_frame,
    build as build_module,
    build_redirectqa,
    find_dumps,
)
from surface_consistency_build.wikimedia.wikis import UNCATEGORISED_LABEL, load_wiki

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.redirectqa_release import RedirectQARow
from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.taxonomy import CANONICAL_LABEL

ENWIKI = load_wiki("enwiki")


@pytest.fixture(scope="module")
def dumps(mini):
    return find_dumps(mini, "enwiki").files


@pytest.fixture(scope="module")
def built(dumps, tmp_path_factory):
    return build_redirectqa(dumps, tmp_path_factory.mktemp("work"), config=ENWIKI, threads=1)


def content(rows, *fields):
    return {tuple(getattr(row, field) for field in fields) for row in rows}


def test_build_counts_its_rows(built):
    rows = list(built.rows())
    redirects = [row for row in rows if row.subject_redirect_wiki_title]

    assert len(rows) == built.n_rows == 2 * built.n_instances
    assert len(redirects) == 2 * built.n_redirect_instances
    assert len({row.triplet_id for row in rows}) == built.n_triples
    assert len(content(rows, "triplet_id", "subject_surface", "template")) == len(rows)


def test_every_fact_has_one_canonical_row_and_a_redirect_in_each_wording(built):
    for template in ("original", "paraphrase"):
        by_fact = {}
        for row in built.rows():
            if row.template == template:
                is_canonical = row.subject_surface_category == (CANONICAL_LABEL,)
                by_fact.setdefault(row.triplet_id, []).append(is_canonical)
        assert all(kinds[0] and not any(kinds[1:]) and kinds[1:] for kinds in by_fact.values())


def test_rows_of_a_fact_differ_in_its_subject_alone(built):
    same = ("relation", "object_id", "object_surface", "object_aliases", "subject_wiki_title")
    facts = content(built.rows(), "triplet_id", *same)

    assert len(facts) == built.n_triples


def test_questions_with_several_right_objects_accept_all_of_them(built):
    several = [row for row in built.rows() if row.n_objects > 1]

    assert several
    for row in several:
        assert row.object_aliases[0] == row.object_surface
        assert len(row.object_aliases) > 1


def test_built_rows_start_with_the_columns_of_the_release():
    assert list(BuiltRow.model_fields)[:15] == list(RedirectQARow.model_fields)


def test_loader_of_the_release_reads_built_rows(built):
    data = load_redirectqa([row.model_dump() for row in built.rows()])

    assert len(data.pairs) == 2 * built.n_redirect_instances
    assert len(data.questions) == built.n_rows


def test_attrition_sums_up_within_a_step(built):
    frame = attrition_frame(built.attrition)
    frame = frame[~frame["unit"].str.contains(" to ")]

    for _, lines in frame.groupby(["step", "unit"]):
        assert lines["rows_in"].nunique() == lines["rows_out"].nunique() == 1
        assert lines["rows_in"].iloc[0] - lines["rows_out"].iloc[0] == lines["removed"].sum()


@pytest.mark.parametrize("threads", [2, 4])
def test_equal_builds_are_equal_bytes(threads, dumps, built, tmp_path):
    again = build_redirectqa(dumps, tmp_path, config=ENWIKI, threads=threads, memory_limit="300MB")

    assert again.path.name == built.path.name
    assert again.path.read_bytes() == built.path.read_bytes()
    assert again.attrition == built.attrition


def test_order_of_pageview_files_does_not_matter(dumps, built, tmp_path):
    turned = replace(dumps, pageviews=dumps.pageviews[::-1])

    again = build_redirectqa(turned, tmp_path, config=ENWIKI, threads=1)

    assert list(again.rows()) == list(built.rows())


def test_older_schema_of_categorylinks_gives_the_same_rows(mini, dumps, built, tmp_path):
    [older] = (mini / "older").glob("enwiki-*-categorylinks.sql.gz")

    again = build_redirectqa(
        replace(dumps, categorylinks=older, linktarget=None), tmp_path, config=ENWIKI
    )

    assert again.path.read_bytes() == built.path.read_bytes()
    assert again.path.name != built.path.name


@pytest.mark.parametrize("with_page", [True, False])
def test_pages_text_gives_the_rows_of_the_tables(with_page, mini, dumps, built, tmp_path):
    xml = replace(
        dumps,
        page=dumps.page if with_page else None,
        page_props=dumps.page_props if with_page else None,
        redirect=None,
        categorylinks=None,
        linktarget=None,
        pages_articles=tuple(sorted(mini.glob("*pages-articles*.xml.bz2"))),
    )

    again = build_redirectqa(xml, tmp_path, config=ENWIKI)

    fields = ("subject_id", "relation", "subject_surface", "subject_surface_category", "question")
    ours, theirs = content(again.rows(), *fields), content(built.rows(), *fields)
    if with_page:
        assert ours == theirs
    else:
        # Without page tables nothing tells that a page is missing or an item was moved.
        assert ours >= theirs


def test_uncategorised_wiki_keeps_redirects_of_any_kind(dumps, built, tmp_path):
    config = ENWIKI.model_copy(
        update={"categories": {}, "templates": {}, "uncategorised": True, "name": "any"}
    )

    result = build_redirectqa(
        replace(dumps, categorylinks=None, linktarget=None), tmp_path, config=config, category_cap=1
    )

    labels = {label for row in result.rows() for label in row.subject_surface_category}
    assert labels == {CANONICAL_LABEL, UNCATEGORISED_LABEL}
    surfaces = content(result.rows(), "subject_id", "subject_surface")
    assert surfaces > content(built.rows(), "subject_id", "subject_surface")


def test_fewer_relations_and_wordings_read_no_dump_again(dumps, built):
    work = built.path.parents[1]
    told = []

    result = build_redirectqa(
        dumps,
        work,
        config=load_wiki("enwiki-v0.1.0"),
        threads=1,
        progress=lambda state: told.append(state.path),
    )

    assert set(told) == {None}
    assert {row.template for row in result.rows()} == {"original"}
    assert "religion" in {row.relation for row in built.rows()}
    assert "religion" not in {row.relation for row in result.rows()}


def test_cap_leaves_the_canonical_rows_of_what_is_kept(dumps, built, tmp_path):
    result = build_redirectqa(
        dumps, built.path.parents[1], config=ENWIKI, category_cap=1, threads=1
    )

    assert result.n_redirect_instances < built.n_redirect_instances
    fields = ("triplet_id", "subject_surface", "question")
    assert content(result.rows(), *fields) < content(built.rows(), *fields)


def test_build_goes_on_after_the_step_that_was_killed(dumps, built, tmp_path, monkeypatch):
    def killed(connection, **settings):
        connection.execute("CREATE TABLE surfaces AS SELECT 1 AS half")
        raise KeyboardInterrupt("killed")

    with monkeypatch.context() as patch:
        patch.setattr(
            "surface_consistency_build.wikimedia.construction._pipeline.keep_surfaces", killed
        )
        with pytest.raises(KeyboardInterrupt, match="killed"):
            build_redirectqa(dumps, tmp_path, config=ENWIKI, threads=1)
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.done.json")}
    assert {"07_categories.done.json"} < {path.name for path in finished}
    assert not list(tmp_path.rglob("08*")) + list(tmp_path.rglob("*.part"))

    again = build_redirectqa(dumps, tmp_path, config=ENWIKI, threads=1)

    assert again.path.read_bytes() == built.path.read_bytes()
    assert all(path.stat().st_mtime_ns == time for path, time in finished.items())


def test_killed_process_leaves_nothing_that_counts(mini, built, tmp_path):
    """A process that dies within a step, without cleaning up, does not harm the next one."""
    script = """
import os, sys
from surface_consistency_build.wikimedia.construction import (
    _pipeline,
    build_redirectqa,
    find_dumps,
)
from surface_consistency_build.wikimedia.wikis import load_wiki

def dies(connection, **settings):
    open(os.path.join(sys.argv[2], "steps", ".10_balance.balanced.parquet.part"), "w").close()
    os._exit(9)

_pipeline.balance = dies
dumps = find_dumps(sys.argv[1], "enwiki").files
build_redirectqa(dumps, sys.argv[2], config=load_wiki("enwiki"), threads=1)
"""
    command = [sys.executable, "-c", script, str(mini), str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == 9

    told = []
    dumps = find_dumps(mini, "enwiki").files
    again = build_redirectqa(
        dumps, tmp_path, config=ENWIKI, threads=1, progress=lambda state: told.append(state.path)
    )

    assert again.path.read_bytes() == built.path.read_bytes()
    assert set(told) == {None}
    assert not list(tmp_path.rglob("*.part"))
    assert not (tmp_path / "spill").exists()


def test_half_written_results_do_not_count(dumps, built, tmp_path):
    first = build_redirectqa(dumps, tmp_path, config=ENWIKI, threads=1)
    step = tmp_path / "steps" / "07_categories.kinds.parquet"
    step.write_bytes(step.read_bytes()[:-20])
    first.path.write_bytes(b"PAR1")

    again = build_redirectqa(dumps, tmp_path, config=ENWIKI, threads=1)

    assert again.path.read_bytes() == built.path.read_bytes()


def test_other_seed_redoes_what_depends_on_it(dumps, tmp_path):
    def markers():
        return {
            path.name: json.loads(path.read_text())["digest"]
            for path in tmp_path.rglob("*.done.json")
        }

    first = build_redirectqa(dumps, tmp_path, config=ENWIKI, triples=20, threads=1)
    before = markers()
    times = {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*.done.json")}
    second = build_redirectqa(dumps, tmp_path, config=ENWIKI, triples=20, seed=1, threads=1)

    changed = {name for name, digest in before.items() if markers()[name] != digest}
    assert min(changed) == "06_sample.done.json"
    assert {name[:2] for name in changed} == {"06", "07", "08", "09", "10", "11"}
    for path in tmp_path.rglob("*.done.json"):
        if path.name in before and path.name not in changed:
            assert path.stat().st_mtime_ns == times[path.name]
    assert first.path != second.path
    assert set(first.rows()) != set(second.rows())


def test_changed_dump_is_read_again(mini, tmp_path):
    folder = tmp_path / "dumps"
    shutil.copytree(mini, folder)
    dumps = find_dumps(folder, "enwiki").files
    first = build_redirectqa(dumps, tmp_path / "work", config=ENWIKI, threads=1)
    dumps.pageviews[1].unlink()
    fewer = replace(dumps, pageviews=dumps.pageviews[:1])

    second = build_redirectqa(fewer, tmp_path / "work", config=ENWIKI, threads=1)

    views = [
        {row.subject_id: row.subject_pageviews for row in result.rows()}
        for result in (first, second)
    ]
    assert any(views[1][key] < views[0][key] for key in views[1])


def test_progress_tells_bytes_and_steps(dumps, tmp_path):
    told = []

    build_redirectqa(dumps, tmp_path, config=ENWIKI, threads=1, progress=told.append)

    assert (
        told[-1].read_bytes
        == told[-1].total_bytes
        == sum(path.stat().st_size for path in dumps.paths)
    )
    assert told[-1].steps_done == told[-1].steps_total == 11
    assert [state.read_bytes for state in told] == sorted(state.read_bytes for state in told)
    assert told[-1].seconds_left == 0
    assert told[0].seconds_left != told[0].seconds_left


def test_cut_off_dump_is_refused_or_counted(dumps, tmp_path):
    cut = tmp_path / "enwiki-20260101-redirect.sql.gz"
    cut.write_bytes(dumps.redirect.read_bytes()[:-400])
    short = replace(dumps, redirect=cut)

    with pytest.raises(DataError, match="redirect"):
        build_redirectqa(short, tmp_path / "work", config=ENWIKI)
    with pytest.warns(UserWarning, match="what came before"):
        result = build_redirectqa(short, tmp_path / "work", config=ENWIKI, allow_truncated=True)

    read = next(count for count in result.attrition if count.step == "read redirect")
    assert 0 <= read.rows_out < 77


def test_build_names_the_step_that_left_nothing(dumps, tmp_path):
    german = ENWIKI.model_copy(update={"project": "de.wikipedia"})

    with pytest.raises(DataError, match="the build has no rows; step 'candidates' left none"):
        build_redirectqa(dumps, tmp_path, config=german)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"triples": 0}, "triples must be at least 1, got 0"),
        ({"category_cap": 0}, "category_cap must be at least 1"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"memory_limit": "much"}, "memory_limit must be a size such as '2GB', got 'much'"),
    ],
)
def test_build_rejects_options(options, message, dumps, tmp_path):
    with pytest.raises(ValueError, match=message):
        build_redirectqa(dumps, tmp_path, config=ENWIKI, **options)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ({"page": None}, "`page` and `redirect`, or `pages_articles`"),
        ({"wikidata": None}, "must give `wikidata`"),
        ({"pageviews": ()}, "must give `pageviews`"),
    ],
)
def test_build_rejects_missing_dumps(missing, message, dumps, tmp_path):
    with pytest.raises(ValueError, match=message):
        build_redirectqa(replace(dumps, **missing), tmp_path, config=ENWIKI)


def test_build_rejects_numbered_categories_without_linktarget(dumps, tmp_path):
    with pytest.raises(SourceNotFoundError, match="give the linktarget dump"):
        build_redirectqa(replace(dumps, linktarget=None), tmp_path, config=ENWIKI)


def test_build_rejects_a_dump_that_is_not_there(dumps, tmp_path):
    gone = replace(dumps, page=tmp_path / "page.sql.gz")

    with pytest.raises(SourceNotFoundError, match="there is no dump"):
        build_redirectqa(gone, tmp_path, config=ENWIKI)


def test_default_cap_is_a_thousand():
    assert build_module.CATEGORY_CAP == 1_000


def test_wiki_may_be_given_by_name(dumps, built):
    work = built.path.parents[1]

    assert build_redirectqa(dumps, work, config="enwiki", threads=1).path == built.path
