"""Builder of RedirectQA from local dump files of Wikipedia and Wikidata.

The source is a folder of dumps with their published names. The configurations are the two releases
of RedirectQA, and other wikis.
"""

from pathlib import Path

from pydantic import JsonValue

from surface_consistency_build.builders.common import BuildConfig
from surface_consistency_build.builders.dumps import DumpsBuilder
from surface_consistency_build.builders.settings import BuildSettings
from surface_consistency_build.cards.dataset_card import CardText, redirectqa_card
from surface_consistency_build.wikimedia.construction.build import BuildResult

_WIKIS = {
    "v1.0.0": ("enwiki", "English Wikipedia, 16 relations, two wordings"),
    "v0.1.0": ("enwiki-v0.1.0", "English Wikipedia, 15 relations (no religion), one wording"),
    "ja": ("jawiki", "Japanese Wikipedia, redirects uncategorised"),
    "zh": ("zhwiki", "Chinese Wikipedia, kinds by its templates"),
    "de": ("dewiki", "German Wikipedia, redirects uncategorised"),
    "simple": ("simplewiki", "Simple English Wikipedia"),
}


class RedirectQADumpsBuilder(DumpsBuilder):
    """Rows of RedirectQA built from dumps."""

    NAME = "redirectqa"
    SETTINGS = BuildSettings
    BUILDER_CONFIGS = tuple(
        BuildConfig(name=name, description=text, settings=BuildSettings(wiki=wiki))
        for name, (wiki, text) in _WIKIS.items()
    )
    DEFAULT_CONFIG_NAME = "v1.0.0"

    def build(self, work: Path) -> BuildResult:
        """Build with the configuration's settings; see `DumpsBuilder.build`."""
        settings: BuildSettings = self.config.settings
        return settings.build(self.plan, work, progress=self.progress)

    def own_options(self) -> dict[str, JsonValue]:
        """List the settings of the draw."""
        settings = self.config.settings
        return {"triples": settings.triples, "unambiguous": settings.unambiguous}

    def card(self) -> CardText:
        """Return the card's text; see `RowsBuilder.card`."""
        return redirectqa_card((self.plan.config.language,))
