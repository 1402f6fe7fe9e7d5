"""Published sources to records: RedirectQA, PopQA, SLAQ, audit files; records as Parquet."""

from surface_consistency._lazy import attach

_HOMES = {
    name: module
    for module, names in {
        "audit_databases": "build_audit_databases compare_databases database_coverage",
        "audit_files": "make_database read_audit_prompts read_database write_audit_prompts "
        "write_database",
        "audit_topologies": "AuditDatabase build_topology",
        "build_records": "BuildManifest RowCounts SourceFile describe_files",
        "columns": "POPQA_COLUMNS REDIRECTQA_COLUMNS resolve_columns",
        "dataset_card": "CardText popqa_redirect_card redirectqa_card render_card",
        "dataset_folder": "PublishedFolder Subset reserve_output_dir write_folder",
        "fact_tables": "Aliases FactTable RelatedFact load_fact_table read_fact_table",
        "features": "make_features read_parquet to_parquet",
        "popqa": "PopQA load_popqa",
        "publish": "PublishPlan Upload publish_folder",
        "redirectqa": "SAMPLE_PATH RedirectQA load_redirectqa load_sample",
        "redirectqa_release": "RedirectQARow hub_rows",
        "slaq": "SLAQ_SAMPLE_PATH Slaq load_slaq load_slaq_sample popularity_halves",
        "slaq_articles": "clean_article is_long_enough read_articles",
        "slaq_review": "ReviewItem write_review_sheet",
        "slaq_rows": "SLAQ_COLUMNS SlaqRow to_slaq_rows write_slaq_csv",
        "slaq_rules": "Violation check_topic",
        "slaq_written": "WrittenFact WrittenTopic parse_written topic_from_written",
        "sources": "open_source",
    }.items()
    for name in names.split()
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = attach(__name__, _HOMES)
