from .build_records import (
    BuildManifest as BuildManifest,
    RowCounts as RowCounts,
    SourceFile as SourceFile,
    describe_file as describe_file,
)
from .dataset_card import (
    CardText as CardText,
    popqa_redirect_card as popqa_redirect_card,
    redirectqa_card as redirectqa_card,
    render_card as render_card,
)
from .dataset_folder import (
    PublishedFolder as PublishedFolder,
    Subset as Subset,
    reserve_output_dir as reserve_output_dir,
    write_folder as write_folder,
)
from .publish import (
    PublishPlan as PublishPlan,
    Upload as Upload,
    publish_folder as publish_folder,
)
