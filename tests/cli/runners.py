"""Runners in user-defined modules, written for the command line."""

_HEAD = """
from surface_consistency.models import Runner
from surface_consistency.schemas import Generation


class {name}(Runner):
    name = "{lower}"

    def __init__(self, model=None, {options}):
        self.options = {{{options_dict}}}

    def fingerprint(self):
        return self.options

"""


def write_runner(folder, monkeypatch, module, name, body, *, before="", **options):
    """Write a runner class and make its module importable; return its name for `--runner`.

    `body` is the body of its methods, `options` are its keyword arguments with their defaults.
    """
    named = ", ".join(f"{key}={value!r}" for key, value in options.items())
    options_dict = ", ".join(f"{key!r}: {key}" for key in options)
    head = _HEAD.format(name=name, lower=name.lower(), options=named, options_dict=options_dict)
    lines = [f"    {line}" if line else "" for line in body.strip("\n").split("\n")]
    (folder / f"{module}.py").write_text(before + head + "\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(folder))
    return f"{module}:{name}"
