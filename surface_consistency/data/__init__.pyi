from .audit_databases import (
    build_audit_databases as build_audit_databases,
    compare_databases as compare_databases,
)
from .audit_files import (
    AuditResult as AuditResult,
    make_database as make_database,
    read_audit_prompts as read_audit_prompts,
    read_audit_results as read_audit_results,
    read_database as read_database,
    write_audit_prompts as write_audit_prompts,
    write_database as write_database,
)
from .audit_topologies import AuditDatabase as AuditDatabase, build_topology as build_topology
from .benchmarks import (
    BLIMP_PARADIGMS as BLIMP_PARADIGMS,
    Benchmark as Benchmark,
    load_benchmark as load_benchmark,
)
from .build_records import (
    BuildManifest as BuildManifest,
    RowCounts as RowCounts,
    SourceFile as SourceFile,
    describe_files as describe_files,
)
from .columns import (
    POPQA_COLUMNS as POPQA_COLUMNS,
    REDIRECTQA_COLUMNS as REDIRECTQA_COLUMNS,
    resolve_columns as resolve_columns,
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
from .fact_tables import (
    Aliases as Aliases,
    FactTable as FactTable,
    RelatedFact as RelatedFact,
    load_fact_table as load_fact_table,
    read_fact_table as read_fact_table,
)
from .features import (
    make_features as make_features,
    read_parquet as read_parquet,
    to_parquet as to_parquet,
)
from .popqa import PopQA as PopQA, load_popqa as load_popqa
from .publish import PublishPlan as PublishPlan, Upload as Upload, publish_folder as publish_folder
from .redirectqa import (
    SAMPLE_PATH as SAMPLE_PATH,
    RedirectQA as RedirectQA,
    load_redirectqa as load_redirectqa,
    load_sample as load_sample,
)
from .redirectqa_release import RedirectQARow as RedirectQARow, hub_rows as hub_rows
from .slaq import (
    SLAQ_SAMPLE_PATH as SLAQ_SAMPLE_PATH,
    LabelledAnswer as LabelledAnswer,
    Slaq as Slaq,
    load_labelled_answers as load_labelled_answers,
    load_slaq as load_slaq,
    load_slaq_sample as load_slaq_sample,
    popularity_halves as popularity_halves,
)
from .slaq_articles import (
    clean_article as clean_article,
    is_long_enough as is_long_enough,
    read_articles as read_articles,
)
from .slaq_review import ReviewItem as ReviewItem, write_review_sheet as write_review_sheet
from .slaq_rows import (
    SLAQ_COLUMNS as SLAQ_COLUMNS,
    SlaqRow as SlaqRow,
    to_slaq_rows as to_slaq_rows,
    write_slaq_csv as write_slaq_csv,
)
from .slaq_rules import Violation as Violation, check_topic as check_topic
from .slaq_written import (
    WrittenFact as WrittenFact,
    WrittenTopic as WrittenTopic,
    parse_written as parse_written,
    topic_from_written as topic_from_written,
)
from .sources import open_source as open_source
