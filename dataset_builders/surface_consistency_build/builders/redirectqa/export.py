"""Build RedirectQA from dumps into a folder that `load_dataset` reads, and publish it.

Run from the root of the repository:

    python -m surface_consistency_build.builders.redirectqa.export --dumps DIR --out DIR
        [--config v1.0.0 ...] [--push-to-hub owner/name [--no-dry-run]]

What would be uploaded is listed; nothing is unless `--no-dry-run` is given.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from surface_consistency_build.builders.redirectqa.dumps_builder import (
    RedirectQADumpsBuilder,
    RedirectQADumpsConfig,
)
from surface_consistency_build.cards.dataset_build import write_redirectqa
from surface_consistency_build.cards.dataset_folder import PublishedFolder
from surface_consistency_build.cards.publish import PublishPlan, check_repo_id, publish_folder

__all__ = ["add_options", "export", "main", "parsed", "push"]


def export(
    data_dir: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    configs: Sequence[RedirectQADumpsConfig],
    work: str | os.PathLike[str],
    overwrite: bool = False,
    checksums: bool = True,
) -> PublishedFolder:
    """Build configurations and write them as one folder with its card.

    Args:
        data_dir: Folder of dump files.
        out: Folder to write.
        configs: What to build; the first one is the default of the folder.
        work: Folder for what is staged.
        overwrite: Whether a data set of other settings in `out` may be replaced.
        checksums: Whether the card names the SHA-1 of each dump; computing it reads every byte.

    Returns:
        What was written.

    Raises:
        SourceNotFoundError: If a dump is missing; names each and where to fetch it.
        DataError: If a dump is broken or a step leaves no rows.
    """
    return write_redirectqa(
        data_dir,
        out,
        builds=[config.settings() for config in configs],
        work=work,
        overwrite=overwrite,
        checksums=checksums,
    )


def push(folder: Path, repo_id: str, *, dry_run: bool) -> PublishPlan:
    """Show what a folder would upload, and upload it unless that is all that was asked for.

    Args:
        folder: The folder.
        repo_id: The repository.
        dry_run: Whether to show only.

    Returns:
        The plan.
    """
    plan = publish_folder(folder, repo_id, dry_run=dry_run)
    print(*plan.lines(), sep="\n")
    return plan


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what every export from dumps is told: where to read, to work, to write and to publish.

    Args:
        parser: The parser.
    """
    parser.add_argument("--dumps", type=Path, required=True, help="folder of dump files")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--work", type=Path, help="folder for what is staged; OUT.work by default")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a data set of other settings in OUT"
    )
    parser.add_argument("--no-checksums", action="store_true", help="leave SHA-1 out of the card")
    parser.add_argument("--push-to-hub", metavar="OWNER/NAME", help="list what would be uploaded")
    parser.add_argument(
        "--no-dry-run", action="store_true", help="with --push-to-hub: upload, not only list"
    )


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse a command line, and check what would otherwise fail after hours.

    Args:
        parser: A parser with `add_options`.
        arguments: Command line; that of the process by default.

    Returns:
        The options; `work` is a path.

    Raises:
        ValueError: If the repository is no `owner/name`.
    """
    options = parser.parse_args(arguments)
    if options.push_to_hub:
        check_repo_id(options.push_to_hub)
    options.work = options.work or options.out.with_name(f"{options.out.name}.work")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Build, write and perhaps publish.

    Args:
        arguments: Command line; that of the process by default.
    """
    known = {config.name: config for config in RedirectQADumpsBuilder.BUILDER_CONFIGS}
    parser = argparse.ArgumentParser(description="Build RedirectQA from dumps into a folder.")
    parser.add_argument("--config", action="append", choices=known, help="repeat for several")
    add_options(parser)
    options = parsed(parser, arguments)
    names = options.config or [RedirectQADumpsBuilder.DEFAULT_CONFIG_NAME]
    export(
        options.dumps,
        options.out,
        configs=[known[name] for name in dict.fromkeys(names)],
        work=options.work,
        overwrite=options.overwrite,
        checksums=not options.no_checksums,
    )
    if options.push_to_hub:
        push(options.out, options.push_to_hub, dry_run=not options.no_dry_run)


if __name__ == "__main__":
    main()
