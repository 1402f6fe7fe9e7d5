"""Builder of PopQA with redirects: the preliminary experiment of RedirectQA (appendix B.1).

Facts, canonical names and accepted answers are those of PopQA; the redirects of their subjects are
taken from a folder of dumps.
"""

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from surface_consistency.data.popqa import PopQA, load_popqa
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency_build.builders.common import BuildConfig
from surface_consistency_build.builders.dumps import DumpsBuilder
from surface_consistency_build.builders.settings import PopQASettings
from surface_consistency_build.cards.dataset_card import CardText, popqa_redirect_card
from surface_consistency_build.wikimedia.construction.build import BuildResult
from surface_consistency_build.wikimedia.construction.popqa import augment_popqa
from surface_consistency_build.wikimedia.wikis import WikiConfig


@dataclass
class PopQAConfig(BuildConfig):
    """The wordings of the questions."""

    settings: PopQASettings = field(default_factory=PopQASettings)
    """Settings for augmenting PopQA."""

    templates: tuple[str, ...] = ("original",)
    """Question templates."""


class PopQARedirectBuilder(DumpsBuilder):
    """Rows of PopQA with redirects."""

    NAME = "popqa-redirect"
    SETTINGS = PopQASettings
    BUILDER_CONFIG_CLASS = PopQAConfig
    BUILDER_CONFIGS = (
        PopQAConfig(name="original", description="PopQA's wording"),
        PopQAConfig(
            name="two-wordings",
            description="PopQA's wording and a paraphrase",
            templates=("original", "paraphrase"),
        ),
    )
    DEFAULT_CONFIG_NAME = "original"

    @cached_property
    def popqa(self) -> PopQA:
        """PopQA's questions."""
        settings = self.config.settings
        return load_popqa(settings.popqa, revision=settings.revision)

    @property
    def wiki(self) -> WikiConfig:
        """The configuration of the wiki, with the question templates of this configuration."""
        wordings = {"question_templates": self.config.templates}
        return self.plan.config.model_copy(update=wordings)

    def own_options(self) -> dict[str, JsonValue]:
        """Return the source and revision of PopQA's rows."""
        source = self.popqa.source
        return {
            "popqa": Path(source.id).name if Path(source.id).exists() else source.id,
            "popqa_revision": source.revision,
            "popqa_digest": source.digest,
            "templates": list(self.config.templates),
        }

    def build(self, work: Path) -> BuildResult:
        """Augment with the configuration's settings; see `DumpsBuilder.build`.

        Warns:
            SurfaceConsistencyWarning: If subjects have no Wikidata item, so that their names are
                used as the titles of their articles.
        """
        settings, questions = self.config.settings, self.popqa.questions
        if n_named := sum(question.triple.subject.id is None for question in questions):
            warnings.warn(
                f"{n_named:,} of {len(questions):,} facts have no Wikidata item of the subject "
                "in the column s_uri; the name of the subject is used as the title of its "
                "article, and facts without an article of this title are dropped",
                SurfaceConsistencyWarning,
                stacklevel=2,
            )
        return augment_popqa(
            [question.triple for question in questions],
            self.plan.files,
            work,
            config=self.wiki,
            seed=settings.seed,
            category_cap=settings.category_cap or None,
            **settings.resources(self.progress),
        )

    def card(self) -> CardText:
        """Return the card's text; see `RowsBuilder.card`."""
        return popqa_redirect_card()
