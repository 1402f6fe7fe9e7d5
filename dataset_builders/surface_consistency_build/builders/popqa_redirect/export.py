"""Build PopQA with redirects into a folder that `load_dataset` reads, and publish it.

Run from the root of the repository:

    python -m surface_consistency_build.builders.popqa_redirect.export --dumps DIR --popqa SOURCE
        --out DIR [--push-to-hub owner/name [--no-dry-run]]

What would be uploaded is listed; nothing is unless `--no-dry-run` is given.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace

from surface_consistency_build.builders.popqa_redirect.popqa_redirect_builder import (
    PopQARedirectBuilder,
    PopQARedirectConfig,
    load_config_popqa,
)
from surface_consistency_build.builders.redirectqa.export import add_options, parsed, push
from surface_consistency_build.cards.dataset_build import DumpSettings, write_popqa_redirect
from surface_consistency_build.cards.dataset_folder import PublishedFolder

__all__ = ["export", "main"]


def export(
    data_dir: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    config: PopQARedirectConfig,
    work: str | os.PathLike[str],
    overwrite: bool = False,
    checksums: bool = True,
) -> PublishedFolder:
    """Augment PopQA and write it as a folder with its card.

    Args:
        data_dir: Folder of dump files.
        out: Folder to write.
        config: What to build.
        work: Folder for what is staged.
        overwrite: Whether a data set of other settings in `out` may be replaced.
        checksums: Whether the card names the SHA-1 of each dump; computing it reads every byte.

    Returns:
        What was written.

    Raises:
        SourceNotFoundError: If PopQA's rows or a dump are missing.
        DataError: If PopQA's rows or a dump are broken, or no fact has a redirect.
    """
    build = DumpSettings(
        name=config.name,
        wiki=config.wiki,
        route=config.route,
        seed=config.seed,
        category_cap=config.category_cap,
    )
    return write_popqa_redirect(
        load_config_popqa(config),
        data_dir,
        out,
        build=build,
        templates=config.templates,
        work=work,
        overwrite=overwrite,
        checksums=checksums,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Build, write and perhaps publish.

    Args:
        arguments: Command line; that of the process by default.
    """
    known = {config.name: config for config in PopQARedirectBuilder.BUILDER_CONFIGS}
    parser = argparse.ArgumentParser(description="Build PopQA with redirects into a folder.")
    parser.add_argument("--popqa", default="akariasai/PopQA", help="hub id, folder or file")
    parser.add_argument("--revision", help="commit of the hub repository")
    parser.add_argument("--config", choices=known, default=PopQARedirectBuilder.DEFAULT_CONFIG_NAME)
    add_options(parser)
    options = parsed(parser, arguments)
    export(
        options.dumps,
        options.out,
        config=replace(known[options.config], popqa=options.popqa, revision=options.revision),
        work=options.work,
        overwrite=options.overwrite,
        checksums=not options.no_checksums,
    )
    if options.push_to_hub:
        push(options.out, options.push_to_hub, dry_run=not options.no_dry_run)


if __name__ == "__main__":
    main()
