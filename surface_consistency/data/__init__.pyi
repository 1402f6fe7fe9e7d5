from .audit_databases import (
    build_audit_databases as build_audit_databases,
)
from .audit_databases import (
    compare_databases as compare_databases,
)
from .audit_databases import (
    database_coverage as database_coverage,
)
from .audit_files import (
    make_database as make_database,
)
from .audit_files import (
    read_audit_prompts as read_audit_prompts,
)
from .audit_files import (
    read_database as read_database,
)
from .audit_files import (
    write_audit_prompts as write_audit_prompts,
)
from .audit_files import (
    write_database as write_database,
)
from .audit_topologies import AuditDatabase as AuditDatabase
from .audit_topologies import build_topology as build_topology
from .build_records import (
    BuildManifest as BuildManifest,
)
from .build_records import (
    RowCounts as RowCounts,
)
from .build_records import (
    SourceFile as SourceFile,
)
from .build_records import (
    describe_files as describe_files,
)
from .columns import (
    POPQA_COLUMNS as POPQA_COLUMNS,
)
from .columns import (
    REDIRECTQA_COLUMNS as REDIRECTQA_COLUMNS,
)
from .columns import (
    resolve_columns as resolve_columns,
)
from .dataset_card import (
    CardText as CardText,
)
from .dataset_card import (
    popqa_redirect_card as popqa_redirect_card,
)
from .dataset_card import (
    redirectqa_card as redirectqa_card,
)
from .dataset_card import (
    render_card as render_card,
)
from .dataset_folder import (
    PublishedFolder as PublishedFolder,
)
from .dataset_folder import (
    Subset as Subset,
)
from .dataset_folder import (
    reserve_output_dir as reserve_output_dir,
)
from .dataset_folder import (
    write_folder as write_folder,
)
from .fact_tables import (
    Aliases as Aliases,
)
from .fact_tables import (
    FactTable as FactTable,
)
from .fact_tables import (
    RelatedFact as RelatedFact,
)
from .fact_tables import (
    load_fact_table as load_fact_table,
)
from .fact_tables import (
    read_fact_table as read_fact_table,
)
from .features import (
    make_features as make_features,
)
from .features import (
    read_parquet as read_parquet,
)
from .features import (
    to_parquet as to_parquet,
)
from .popqa import PopQA as PopQA
from .popqa import load_popqa as load_popqa
from .publish import PublishPlan as PublishPlan
from .publish import Upload as Upload
from .publish import publish_folder as publish_folder
from .redirectqa import (
    SAMPLE_PATH as SAMPLE_PATH,
)
from .redirectqa import (
    RedirectQA as RedirectQA,
)
from .redirectqa import (
    load_redirectqa as load_redirectqa,
)
from .redirectqa import (
    load_sample as load_sample,
)
from .redirectqa_release import RedirectQARow as RedirectQARow
from .redirectqa_release import hub_rows as hub_rows
from .slaq import (
    SLAQ_SAMPLE_PATH as SLAQ_SAMPLE_PATH,
)
from .slaq import (
    Slaq as Slaq,
)
from .slaq import (
    load_slaq as load_slaq,
)
from .slaq import (
    load_slaq_sample as load_slaq_sample,
)
from .slaq import (
    popularity_halves as popularity_halves,
)
from .slaq_articles import (
    clean_article as clean_article,
)
from .slaq_articles import (
    is_long_enough as is_long_enough,
)
from .slaq_articles import (
    read_articles as read_articles,
)
from .slaq_review import ReviewItem as ReviewItem
from .slaq_review import write_review_sheet as write_review_sheet
from .slaq_rows import (
    SLAQ_COLUMNS as SLAQ_COLUMNS,
)
from .slaq_rows import (
    SlaqRow as SlaqRow,
)
from .slaq_rows import (
    to_slaq_rows as to_slaq_rows,
)
from .slaq_rows import (
    write_slaq_csv as write_slaq_csv,
)
from .slaq_rules import Violation as Violation
from .slaq_rules import check_topic as check_topic
from .slaq_written import (
    WrittenFact as WrittenFact,
)
from .slaq_written import (
    WrittenTopic as WrittenTopic,
)
from .slaq_written import (
    parse_written as parse_written,
)
from .slaq_written import (
    topic_from_written as topic_from_written,
)
from .sources import open_source as open_source
