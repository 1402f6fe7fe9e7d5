"""Configurations of wikis for the construction of RedirectQA, by name or from a file."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, field_validator, model_validator

from surface_consistency.errors import RecordError, SourceNotFoundError
from surface_consistency.reading import decode_text, parse_json, parse_toml, read_document, shown
from surface_consistency.schemas._record import Items, NonEmpty, Record
from surface_consistency.taxonomy import CATEGORIES, RELATIONS, TEMPLATES, parse_category
from surface_consistency_build.wikimedia.rcat_templates import ENWIKI_TABLE, template_key

UNCATEGORISED_LABEL = "Redirects_uncategorised"
"""Label of redirects without a category, in wikis that do not categorise their redirects."""

_ENGLISH = "en"


def _label(name: str, text: str) -> str:
    """Return the label to which a category or template is mapped."""
    category = parse_category(text)
    if category is None:
        raise ValueError(
            f"{shown(name)} is mapped to {shown(text)}, which is not one of the {len(CATEGORIES)} "
            "redirect categories of the taxonomy"
        )
    return category.label


class WikiConfig(Record):
    """Configuration of a wiki: its names in the dumps, redirect categories and questions."""

    name: NonEmpty
    """Name of the configuration, such as "enwiki"."""

    wiki: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    """Database name, the first part of the dumps' file names, such as "enwiki"."""

    language: NonEmpty
    """Language code of Wikidata's labels and aliases, such as "en"."""

    project: NonEmpty
    """Name in the pageview files, such as "en.wikipedia"."""

    categories: dict[str, str] = Field(default_factory=dict)
    """Category title of the wiki, with underscores and without namespace, to one of the 33 labels
    of the taxonomy; several titles may share a label."""

    templates: dict[str, str] = Field(default_factory=dict)
    """Template name to one of the 33 labels, for reading categories from the pages' text; names are
    normalised by `template_key`, so that letter case and "Redirect from" do not matter."""

    uncategorised: bool = False
    """Whether redirects that are in no category are kept, as `UNCATEGORISED_LABEL`."""

    relations: Items[str] = tuple(RELATIONS)
    """Relations of the questions, by their names in the taxonomy."""

    question_templates: Items[str] = TEMPLATES
    """Wordings of the questions, by name."""

    questions: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Relation to wording to question, with `{}` as the place of the subject; missing questions are
    in English. A wiki of another language must give all questions or no question."""

    notes: str = ""
    """Notes on the wiki's redirect categories."""

    @field_validator("categories")
    @classmethod
    def _categories_of_the_taxonomy(cls, value: dict[str, str]) -> dict[str, str]:
        """Spell labels as in the taxonomy, titles as in the tables."""
        return {
            title.strip().replace(" ", "_"): _label(title, text) for title, text in value.items()
        }

    @field_validator("templates")
    @classmethod
    def _templates_of_the_taxonomy(cls, value: dict[str, str]) -> dict[str, str]:
        """Spell labels as in the taxonomy, names by `template_key`."""
        return {template_key(name): _label(name, text) for name, text in value.items()}

    @field_validator("relations")
    @classmethod
    def _relations_of_the_taxonomy(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """Reject unknown, repeated or missing relations."""
        unknown = [name for name in value if name not in RELATIONS]
        if unknown or not value or len(set(value)) < len(value):
            raise ValueError(
                f"relations must be one or more distinct names of {', '.join(RELATIONS)}; "
                f"got {', '.join(value) or 'none'}"
            )
        return value

    @model_validator(mode="after")
    def _can_ask_and_sort(self) -> "WikiConfig":
        """Reject a wiki without questions, or without redirects to keep."""
        if not self.question_templates:
            raise ValueError("question_templates must name at least one wording")
        for relation in self.relations:
            for template in self.question_templates:
                if self._wording(relation, template).count("{}") != 1:
                    raise ValueError(
                        f"the {shown(template)} question of {shown(relation)} must contain "
                        f"{{}} exactly once"
                    )
        self._reject_unknown_questions()
        self._reject_mixed_languages()
        if not self.uncategorised and not self.categories and not self.templates:
            raise ValueError("a wiki without categories and templates needs uncategorised = true")
        return self

    def _reject_unknown_questions(self) -> None:
        """Reject questions of an unknown relation or wording, which would never be used."""
        for relation, wordings in self.questions.items():
            if relation not in RELATIONS:
                raise ValueError(
                    f"questions are given for {shown(relation)}, which is not a relation; "
                    f"the relations are {', '.join(RELATIONS)}"
                )
            known = dict.fromkeys((*self.question_templates, *TEMPLATES))
            for template in wordings:
                if template not in known:
                    raise ValueError(
                        f"the wording {shown(template)} of {shown(relation)} is not used; add it "
                        f"to question_templates, or name it as one of {', '.join(known)}"
                    )

    def _reject_mixed_languages(self) -> None:
        """Reject a mixture of questions in the wiki's language and in English."""
        questions = [
            (name, template) for name in self.relations for template in self.question_templates
        ]
        english = [pair for pair in questions if pair[1] not in self.questions.get(pair[0], {})]
        if self.language != _ENGLISH and english and len(english) < len(questions):
            relation, template = english[0]
            raise ValueError(
                f"{len(questions) - len(english)} questions are given, and {len(english)} would be "
                f"in English (the first is the {shown(template)} question of {shown(relation)}); "
                "give them too, or restrict relations and question_templates to the given ones"
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that its redirects can have, sorted."""
        mapped = {*self.categories.values(), *self.templates.values()}
        if self.uncategorised:
            mapped.add(UNCATEGORISED_LABEL)
        return tuple(sorted(mapped))

    @property
    def properties(self) -> dict[int, str]:
        """Number of the Wikidata property to relation, such as 19 to "place_of_birth"."""
        return {int(RELATIONS[name].property_id[1:]): name for name in self.relations}

    def question(self, relation: str, surface: str, *, template: str) -> str:
        """Return the question about a relation of a subject.

        Args:
            relation: One of `relations`.
            surface: Name of the subject, used unchanged.
            template: One of `question_templates`.

        Returns:
            The question.

        Raises:
            ValueError: If the relation has no wording of that name.
        """
        return self._wording(relation, template).replace("{}", surface)

    def _wording(self, relation: str, template: str) -> str:
        """Return the wording of this wiki, or the English one."""
        own = self.questions.get(relation, {})
        if template in own:
            return own[template]
        if template in TEMPLATES:
            return RELATIONS[relation].question("{}", template=template)
        raise ValueError(
            f"relation {shown(relation)} has no question template {shown(template)}; the templates "
            f"are {', '.join(sorted({*own, *TEMPLATES}))}"
        )


def _fields(path: Path) -> dict[str, object]:
    """Read the fields of a file, and add those of its base."""
    text = decode_text(read_document(path), str(path))
    if path.suffix == ".json":
        fields = parse_json(text, str(path), remedy="repair the file")
    else:
        fields = parse_toml(text, str(path))
    if not isinstance(fields, dict):
        raise RecordError(f"{path}: a configuration must be a table of fields")
    base = fields.pop("base", None)
    if base is None:
        return fields
    if not isinstance(base, str) or base not in WIKIS:
        raise RecordError(f"{path}: base must be one of {', '.join(WIKIS)}, got {shown(base)}")
    return WIKIS[base].model_dump() | fields


_BUNDLED = Path(__file__).with_name("configurations")
_ENWIKI = WikiConfig(
    name="enwiki",
    wiki="enwiki",
    language="en",
    project="en.wikipedia",
    categories={label: label for label in CATEGORIES},
    templates=ENWIKI_TABLE,
    notes=(
        "The labels of the taxonomy are the titles of the wiki's own categories, so the category "
        "tables need no list of templates; reading the pages' text does."
    ),
)
_SIMPLEWIKI = {
    "name": "simplewiki",
    "wiki": "simplewiki",
    "project": "simple.wikipedia",
    "notes": (
        "Simple English Wikipedia uses the redirect templates and categories of the English one; "
        "few redirects have them, so a build is small."
    ),
}
_ENWIKI_V0_1_0 = {
    "name": "enwiki-v0.1.0",
    "relations": tuple(name for name in RELATIONS if name != "religion"),
    "question_templates": ("original",),
}

WIKIS: dict[str, WikiConfig] = {
    "enwiki": _ENWIKI,
    "enwiki-v0.1.0": _ENWIKI.model_copy(update=_ENWIKI_V0_1_0),
    "simplewiki": _ENWIKI.model_copy(update=_SIMPLEWIKI),
    **{
        name: WikiConfig.model_validate(_fields(_BUNDLED / f"{name}.toml"))
        for name in ("zhwiki", "jawiki", "dewiki")
    },
}
"""The bundled wikis, by name: English Wikipedia as in RedirectQA v1.0.0 (16 relations, two
wordings) and v0.1.0 (without religion, one wording), Simple English, Chinese (by its templates),
Japanese and German Wikipedia (redirects uncategorised)."""


def load_wiki(source: str | os.PathLike[str]) -> WikiConfig:
    """Load a wiki's configuration.

    Args:
        source: One of `WIKIS`, or a TOML or JSON file with the fields of `WikiConfig`. A file may
            contain `base = "enwiki"`: missing fields are taken from that configuration.

    Returns:
        The configuration.

    Raises:
        SourceNotFoundError: If `source` is neither a known name nor an existing file.
        RecordError: If the file is not a valid configuration; the message contains the field and
            the rule.

    Examples:
        >>> load_wiki("enwiki").project
        'en.wikipedia'
    """
    if str(source) in WIKIS:
        return WIKIS[str(source)]
    path = Path(source)
    if not path.is_file():
        raise SourceNotFoundError(
            f"wiki {shown(str(source))} not found: neither a file nor one of {', '.join(WIKIS)}; "
            "describe it in a TOML file with the fields of WikiConfig"
        )
    try:
        return WikiConfig.model_validate(_fields(path))
    except ValidationError as error:
        raise RecordError(f"{path}: {_described(error)}") from error


def _described(error: ValidationError) -> str:
    """Describe the field and the rule that it breaks; rules about several fields name them."""
    clauses = []
    for detail in error.errors(include_url=False):
        rule = detail["msg"].removeprefix("Value error, ")
        field = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "extra_forbidden":
            fields = ", ".join(("base", *WikiConfig.model_fields))
            rule = f"unknown field; the fields are {fields}"
        elif detail["type"] not in {"missing", "value_error"}:
            rule = f"{rule}, got {shown(detail['input'])}"
        clauses.append(f"field {shown(field)}: {rule}" if field else rule)
    return "; ".join(clauses)
