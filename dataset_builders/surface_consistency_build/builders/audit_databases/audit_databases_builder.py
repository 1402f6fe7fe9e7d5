"""Builder of the audit databases, with one configuration of prompts and one of triplets.

The source is a folder in a layout that the study of the audit reads: the published databases, or a
folder written by `build_audit_databases`.
"""

from collections.abc import Iterator
from typing import Final

import datasets

from surface_consistency.schemas import AuditPrompt, Record
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.audit.conditions import find_conditions
from surface_consistency_build.builders.common import BuildConfig, RowsBuilder
from surface_consistency_build.cards.build_records import Row
from surface_consistency_build.cards.dataset_card import CardText, audit_card


class AuditPromptRow(AuditPrompt):
    """A prompt and its database."""

    domain: str
    """Name of the table of facts."""

    topology: str
    """Topology: the way in which facts are stored."""

    style: str
    """Style of the prompt."""


class AuditTripletRow(Record):
    """An entry of a database."""

    domain: str
    """Name of the table of facts."""

    topology: str
    """Topology: the way in which facts are stored."""

    index: int
    """Position of the entry in its database."""

    subject: str
    """Subject of a lookup."""

    relation: str
    """Relation of a lookup."""

    object: str
    """The value that a lookup returns."""


class AuditSourceSettings(Settings):
    """Empty settings: databases of the audit have no settings."""


_ROWS: Final[dict[str, type[Record]]] = {"prompts": AuditPromptRow, "triplets": AuditTripletRow}


class AuditDatabasesBuilder(RowsBuilder):
    """Prompts, or triplets, of the databases that the study of the audit finds in a folder."""

    NAME = "lmlm-audit"
    SETTINGS = AuditSourceSettings
    WHERE = (
        "clone https://github.com/raeesiarya/LMLMAudit and pass its folder `data`, or write "
        "databases with `surface-consistency build audit`"
    )
    BUILDER_CONFIGS = tuple(
        BuildConfig(name=name, settings=AuditSourceSettings()) for name in _ROWS
    )
    DEFAULT_CONFIG_NAME = "prompts"
    DEFAULTS = tuple(_ROWS)

    def _info(self) -> datasets.DatasetInfo:
        """Describe the columns of the configuration."""
        self.record = _ROWS[self.config.name]
        return super()._info()

    def rows(self) -> Iterator[Row]:
        """Yield the prompts, or the entries of each database once; see `RowsBuilder.rows`."""
        seen: set[str] = set()
        for condition in find_conditions(self.config.source):
            label = condition.label
            place = {"domain": label.domain, "topology": label.topology}
            if self.record is AuditPromptRow:
                for prompt in condition.prompts:
                    yield prompt.model_dump(mode="json") | place | {"style": label.style}
            elif condition.database_file not in seen:
                seen.add(condition.database_file)
                for index, entry in enumerate(condition.database):
                    yield place | {"index": index} | entry._asdict()

    def card(self) -> CardText:
        """Return the card's text; see `RowsBuilder.card`."""
        return audit_card()
