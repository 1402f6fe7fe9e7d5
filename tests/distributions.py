"""Metadata of distributions that register names, in the layout of an installer."""


def install(folder, name, group, points, version="1.0"):
    """Write a distribution with entry points, `{name: value}`, in one group."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"[{group}]", *(f"{entry} = {value}" for entry, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
