"""Builder of SLAQ from rows in the columns of the release."""

from collections.abc import Iterator

from surface_consistency.data.slaq import load_slaq
from surface_consistency.data.slaq_rows import SLAQ_COLUMNS, SlaqRow, flag_of, views_of
from surface_consistency.errors import DataError
from surface_consistency.rows.columns import resolve_columns
from surface_consistency_build.builders.common import BuildConfig, SourceBuilder
from surface_consistency_build.cards.build_records import Row
from surface_consistency_build.cards.dataset_card import CardText, slaq_card

_HALVES = {
    "all": "All topics.",
    "popular": "The half of each category with more page views.",
    "obscure": "The half of each category with fewer page views.",
}


def _flag(value: object) -> int | None:
    """Read an entity flag as 0 or 1."""
    flag = flag_of(value)
    return None if flag is None else int(flag)


class SlaqBuilder(SourceBuilder):
    """Topics of SLAQ, validated by `load_slaq` and written unchanged."""

    NAME = "slaq"
    record = SlaqRow
    READERS = {  # noqa: RUF012 - constant of the class
        "Pageviews": views_of,
        **{f"ShortQ{number}_Entity": _flag for number in range(1, 6)},
    }
    WHERE = "download WueNLP/SLAQ from the hub"
    BUILDER_CONFIGS = tuple(
        BuildConfig(name=name, description=text) for name, text in _HALVES.items()
    )
    DEFAULT_CONFIG_NAME = "all"

    def check(self) -> None:
        """Load the rows as topics; see `SourceBuilder.check`."""
        topics = load_slaq(self.config.source, split=self.split).topics
        half = self.config.name
        self._topics = {topic.topic for topic in topics if half in ("all", topic.popularity)}
        if not self._topics:
            raise DataError(
                f"{self.config.source} has no topic in the {half} half; it needs page views, and "
                "two topics per category"
            )

    def rows(self) -> Iterator[Row]:
        """Yield the topics of the half; see `RowsBuilder.rows`."""
        name = resolve_columns(self.info.features, SLAQ_COLUMNS)["topic"]
        return (row for row in super().rows() if row[name].strip() in self._topics)

    def base_card(self) -> CardText:
        """Return the card's text; see `SourceBuilder.base_card`."""
        return slaq_card()
