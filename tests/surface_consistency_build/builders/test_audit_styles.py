from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st
from surface_consistency_build.builders import audit_databases
from surface_consistency_build.builders.audit_databases.styles import (
    AUDIT_STYLES,
    AuditWording,
    audit_prompt_text,
    audit_prompts,
    style_writers,
)

from surface_consistency.studies.audit.files import read_audit_prompts

CUSTOM = list(
    product(("countries", "politicians", "sports"), ("base", "alias", "noise", "collision"))
)


@pytest.fixture
def prompts_of(data_files):
    """Read the published prompts of a database in a style."""
    root = data_files / "lmlm_audit" / "data"

    def read(style, *database):
        folder = (
            root / "custom_databases" / database[0] / "prompts" / database[1]
            if database
            else root / "released_database" / "prompts"
        )
        return read_audit_prompts(folder / f"prompts_{style}.jsonl")

    return read


@pytest.mark.parametrize("style", AUDIT_STYLES)
def test_styles_agree_with_the_published_prompts(prompts_of, style):
    """All 1,938 facts of the twelve databases, in each style, with identical texts."""
    n_prompts = 0
    for database in CUSTOM:
        published = prompts_of(style, *database)
        blank = [row.model_copy(update={"prompt_text": "?"}) for row in published]

        assert audit_prompts(blank, style=style) == published
        n_prompts += len(published)

    assert n_prompts == 1_938


# Number of the 100 released prompts with the plain wording, counted in the published files: theirs
# are written individually, with "Can you tell me" and mostly with a space after the gap.
PLAIN = {"paraphrased_questions": 0, "cloze": 0, "continuations": 7}


@pytest.mark.parametrize("style", AUDIT_STYLES)
def test_plain_wordings_agree_with_few_released_prompts(prompts_of, style):
    released = prompts_of(style)

    plain = audit_prompts(released, style=style, wordings={})

    agree = sum(one == other for one, other in zip(plain, released, strict=True))
    assert agree == PLAIN.get(style, 5)


@pytest.mark.parametrize("style", ["contextual_questions", "fewshot_questions"])
def test_frames_agree_with_all_released_prompts(prompts_of, style):
    """With the released questions as wordings, the prompts equal the published ones."""
    for direct, row in zip(prompts_of("direct_questions"), prompts_of(style), strict=True):
        wording = AuditWording(question=direct.prompt_text, statement="-")
        text = audit_prompt_text(
            row.subject, row.relation, style=style, wordings={row.relation: wording}
        )
        assert text == row.prompt_text


def test_relations_with_slots_get_their_wording():
    question = "Who was {office|lower} of {subject} in {year}?"
    wordings = {"{office} of {year}": AuditWording(question=question, statement="-")}

    text = audit_prompt_text("Rome", "Consul of 63 BC", style="direct_questions", wordings=wordings)

    assert text == "Who was consul of Rome in 63 BC?"


@example("{question}", "Capital")
@example("{subject} 100 % {x}", "Capital")
@example("a\\1b", "Capital")
@given(subject=st.text(min_size=1), relation=st.text(min_size=1))
def test_prompts_of_any_fact_contain_the_subject_in_every_style(subject, relation):
    for style in AUDIT_STYLES:
        assert subject in audit_prompt_text(subject, relation, style=style)


def test_abbreviations_stay_in_upper_case_in_plain_wordings():
    text = audit_prompt_text("Chile", "UN Code", style="continuations", wordings={})

    assert text == "Tell me about Chile. The UN code of Chile is"


def test_style_writers_write_the_prompts_of_their_styles(prompts_of):
    targets = prompts_of("cloze", "sports", "base")

    written = {style: write(targets) for style, write in style_writers().items()}

    assert tuple(written) == AUDIT_STYLES
    assert written["continuations"] == audit_prompts(targets, style="continuations")


@pytest.mark.parametrize(
    "call",
    [lambda: audit_prompt_text("a", "b", style="haiku"), lambda: style_writers(["cloze", "haiku"])],
)
def test_unknown_style_is_rejected(call):
    with pytest.raises(ValueError, match=r"style must be one of direct_questions, .* got 'haiku'"):
        call()


@pytest.mark.parametrize("notice", ["audit_wordings.NOTICE", "domains/NOTICE"])
def test_copied_wordings_and_tables_contain_the_licence(data_files, notice):
    """Wordings and tables contain the complete licence of their source."""
    licence = (data_files / "lmlm_audit" / "LICENSE").read_text(encoding="utf-8")

    text = (Path(audit_databases.__file__).parent / notice).read_text(encoding="utf-8")

    assert text.endswith(licence)
    assert "raeesiarya/LMLMAudit" in text
