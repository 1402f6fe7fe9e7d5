"""Built rows to a folder that `load_dataset` reads, its data set card, and the way to the hub."""

from surface_consistency.data.publishing.card import CardText, render_card
from surface_consistency.data.publishing.claim import claim_folder, make_folder
from surface_consistency.data.publishing.counts import RowCounts
from surface_consistency.data.publishing.folder import PublishedFolder, Subset, write_folder
from surface_consistency.data.publishing.manifest import (
    BuildManifest,
    SourceFile,
    describe_files,
)
from surface_consistency.data.publishing.push import (
    PublishPlan,
    Upload,
    check_repo_id,
    publish_folder,
)
from surface_consistency.data.publishing.redirectqa_card import (
    popqa_redirect_card,
    redirectqa_card,
)

__all__ = [
    "BuildManifest",
    "CardText",
    "PublishPlan",
    "PublishedFolder",
    "RowCounts",
    "SourceFile",
    "Subset",
    "Upload",
    "check_repo_id",
    "claim_folder",
    "describe_files",
    "make_folder",
    "popqa_redirect_card",
    "publish_folder",
    "redirectqa_card",
    "render_card",
    "write_folder",
]
