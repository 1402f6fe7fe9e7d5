import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from surface_consistency_build.wikimedia.construction import _pipeline, build_redirectqa, find_dumps
from surface_consistency_build.wikimedia.wikis import load_wiki

from surface_consistency.errors import SourceNotFoundError


def content(rows, *fields):
    return {tuple(getattr(row, field) for field in fields) for row in rows}


def test_build_does_not_depend_on_the_order_of_pageview_files(dumps, built, tmp_path):
    reversed_dumps = replace(dumps, pageviews=dumps.pageviews[::-1])

    again = build_redirectqa(reversed_dumps, tmp_path, config="enwiki", threads=1)

    assert list(again.rows()) == list(built.rows())


def test_text_of_pages_gives_at_least_the_rows_of_the_tables(mini, dumps, built, tmp_path):
    """Without page tables, missing pages and moved items are not detected."""
    tables = dict.fromkeys(("page", "page_props", "redirect", "categorylinks", "linktarget"))
    exports = tuple(sorted(mini.glob("*pages-articles*.xml.bz2")))

    again = build_redirectqa(
        replace(dumps, pages_articles=exports, **tables), tmp_path, config="enwiki"
    )

    fields = ("subject_id", "relation", "subject_surface", "subject_surface_category", "question")
    assert content(again.rows(), *fields) >= content(built.rows(), *fields)


def test_fewer_relations_and_wordings_do_not_read_dumps_again(dumps, built):
    """Their rows are tested with the miniature wiki."""
    states = []

    options = {"threads": 1, "progress": lambda state: states.append(state.path)}
    config = load_wiki("enwiki-v0.1.0")
    build_redirectqa(dumps, built.path.parents[1], config=config, **options)

    assert set(states) == {None}


def test_build_resumes_after_a_killed_step(dumps, built, tmp_path, monkeypatch):
    def killed(connection, **settings):
        connection.execute("CREATE TABLE surfaces AS SELECT 1 AS half")
        raise KeyboardInterrupt("killed")

    with monkeypatch.context() as patch:
        patch.setattr(_pipeline, "keep_surfaces", killed)
        with pytest.raises(KeyboardInterrupt, match="killed"):
            build_redirectqa(dumps, tmp_path, config="enwiki", threads=1)
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.done.json")}
    assert {"07_categories.done.json"} < {path.name for path in finished}
    assert not list(tmp_path.rglob("08*")) + list(tmp_path.rglob("*.part"))

    again = build_redirectqa(dumps, tmp_path, config="enwiki", threads=1)

    assert again.path.read_bytes() == built.path.read_bytes()
    assert all(path.stat().st_mtime_ns == time for path, time in finished.items())


def test_files_of_a_killed_process_are_not_used(mini, built, tmp_path):
    """Files of a process that is killed within a step do not affect the next one."""
    script = """
import os, sys
from surface_consistency_build.wikimedia.construction import _pipeline, build_redirectqa, find_dumps

def killed(connection, **settings):
    open(os.path.join(sys.argv[2], "steps", ".10_balance.balanced.parquet.part"), "w").close()
    os._exit(9)

_pipeline.balance = killed
build_redirectqa(find_dumps(sys.argv[1], "enwiki").files, sys.argv[2], config="enwiki", threads=1)
"""
    command = [sys.executable, "-c", script, str(mini), str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == 9

    states = []
    dumps = find_dumps(mini, "enwiki").files
    options = {"threads": 1, "progress": lambda state: states.append(state.path)}
    again = build_redirectqa(dumps, tmp_path, config="enwiki", **options)

    assert again.path.read_bytes() == built.path.read_bytes()
    assert set(states) == {None}
    assert not list(tmp_path.rglob("*.part"))
    assert not (tmp_path / "spill").exists()


def test_incomplete_results_are_not_used(dumps, built, tmp_path):
    first = build_redirectqa(dumps, tmp_path, config="enwiki", threads=1)
    step = tmp_path / "steps" / "07_categories.kinds.parquet"
    step.write_bytes(step.read_bytes()[:-20])
    first.path.write_bytes(b"PAR1")

    again = build_redirectqa(dumps, tmp_path, config="enwiki", threads=1)

    assert again.path.read_bytes() == built.path.read_bytes()


def test_another_seed_repeats_the_dependent_steps(dumps, tmp_path):
    def times():
        return {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*.done.json")}

    first = build_redirectqa(dumps, tmp_path, config="enwiki", triples=20, threads=1)
    before = times()
    second = build_redirectqa(dumps, tmp_path, config="enwiki", triples=20, seed=1, threads=1)

    changed = {name for name, time in before.items() if times()[name] != time}
    assert min(changed) == "06_sample.done.json"
    assert {name[:2] for name in changed} == {"06", "07", "08", "09", "10", "11"}
    assert first.path != second.path
    assert set(first.rows()) != set(second.rows())


def test_progress_contains_bytes_and_steps(dumps, tmp_path):
    states = []

    build_redirectqa(dumps, tmp_path, config="enwiki", threads=1, progress=states.append)

    size = sum(path.stat().st_size for path in dumps.paths)
    assert states[-1].read_bytes == states[-1].total_bytes == size
    assert states[-1].steps_done == states[-1].steps_total == 11
    assert [state.read_bytes for state in states] == sorted(state.read_bytes for state in states)
    assert states[-1].seconds_left == 0
    assert states[0].seconds_left != states[0].seconds_left


@pytest.mark.parametrize(
    ("options", "missing", "error", "message"),
    [
        ({"triples": 0}, {}, ValueError, "triples must be at least 1, got 0"),
        ({"category_cap": 0}, {}, ValueError, "category_cap must be at least 1"),
        ({"threads": 0}, {}, ValueError, "threads must be at least 1"),
        ({"memory_limit": "much"}, {}, ValueError, "memory_limit must be a size .*, got 'much'"),
        ({}, {"page": None}, ValueError, "`page` and `redirect`, or `pages_articles`"),
        ({}, {"wikidata": None}, ValueError, "must give `wikidata`"),
        ({}, {"pageviews": ()}, ValueError, "must give `pageviews`"),
        ({}, {"linktarget": None}, SourceNotFoundError, "give the linktarget dump"),
        ({}, {"page": Path("page.sql.gz")}, SourceNotFoundError, "dump .* not found"),
    ],
)
def test_build_rejects_invalid_options_and_dumps(options, missing, error, message, dumps, tmp_path):
    with pytest.raises(error, match=message):
        build_redirectqa(replace(dumps, **missing), tmp_path, config="enwiki", **options)
