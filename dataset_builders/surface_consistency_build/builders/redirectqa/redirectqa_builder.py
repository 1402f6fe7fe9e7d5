"""Builder of RedirectQA from rows in the columns of release v1.0.0, or of this package's builds."""

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency_build.builders.common import BuildConfig, SourceBuilder
from surface_consistency_build.cards.dataset_card import CardText, redirectqa_card
from surface_consistency_build.wikimedia.construction.rows import BuiltRow


class RedirectQABuilder(SourceBuilder):
    """Rows of RedirectQA, validated by `load_redirectqa` and written unchanged."""

    NAME = "redirectqa"
    record = BuiltRow
    WHERE = "download naist-nlp/RedirectQA from the hub, or pass a folder of dumps"
    BUILDER_CONFIGS = (BuildConfig(name="default", description="The rows of the source"),)

    def check(self) -> None:
        """Load the rows as questions; see `SourceBuilder.check`."""
        self._language = load_redirectqa(self.config.source, split=self.split).language

    def base_card(self) -> CardText:
        """Return the card's text; see `SourceBuilder.base_card`."""
        return redirectqa_card((self._language,) if self._language else ())
