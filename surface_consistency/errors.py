"""The exceptions and warnings of this package.

```
SurfaceConsistencyError
├── DataError                    a source, column, row or record is not what it must be
│   ├── ColumnNotFoundError      a column that the mapping looks for is not there
│   ├── DumpError                a dump is truncated, corrupt or not of the kind it should be
│   ├── RecordError              one line or row breaks its record's schema
│   └── SourceNotFoundError      a file, folder or hub repository cannot be reached
├── MissingDependencyError       an optional library is not installed
│   └── UnsupportedVersionError  it is installed in a version too old or too new
├── PluginError                  a study, analysis, runner or rule cannot be found or loaded
├── RetrievalError               a store of facts could not be built or asked
├── RunnerError                  a model could not be loaded or asked
│   ├── PromptTooLongError       a prompt does not fit the model's context
│   ├── RunnerOutOfMemoryError   the batch was too large for the device
│   └── UnsupportedModelError    an architecture whose components cannot be told apart
├── RunLogError                  the log of a run cannot be used
│   ├── RunLogLockedError        another process writes to the same run
│   └── RunMismatchError         the run was made with other settings
└── WorkFolderLockedError        another process builds in the same folder

SurfaceConsistencyWarning
├── BackupComponentsWarning      components stand in for each other, so one by one they look idle
├── ContaminationWarning         states or databases of an audit that cannot be told apart
├── IncompleteClosureWarning     equivalents of a deleted fact remain
├── IncompletePairWarning        redirects without their canonical row
├── RepeatedRowsWarning          rows of a frame repeat others in all columns
├── TruncatedDumpWarning         a dump ended early; what came before was kept
├── TruncatedPromptWarning       prompts lost demonstrations to fit the model
├── UndefinedMetricWarning       a value is NaN because nothing defines it
├── UnknownCategoryWarning       a category that the taxonomy does not hold
└── UnscoredWarning              verdicts are missing and were left out
```

Bad arguments raise the built-in `ValueError` or `TypeError`.
"""

__all__ = [
    "BackupComponentsWarning",
    "ColumnNotFoundError",
    "ContaminationWarning",
    "DataError",
    "DumpError",
    "IncompleteClosureWarning",
    "IncompletePairWarning",
    "MissingDependencyError",
    "PluginError",
    "PromptTooLongError",
    "RecordError",
    "RepeatedRowsWarning",
    "RetrievalError",
    "RunLogError",
    "RunLogLockedError",
    "RunMismatchError",
    "RunnerError",
    "RunnerOutOfMemoryError",
    "SourceNotFoundError",
    "SurfaceConsistencyError",
    "SurfaceConsistencyWarning",
    "TruncatedDumpWarning",
    "TruncatedPromptWarning",
    "UndefinedMetricWarning",
    "UnknownCategoryWarning",
    "UnscoredWarning",
    "UnsupportedModelError",
    "UnsupportedVersionError",
    "WorkFolderLockedError",
    "WorkerLostError",
]


class SurfaceConsistencyError(Exception):
    """Base of every error that this package raises on its own account."""


class DataError(SurfaceConsistencyError, ValueError):
    """A source, column, row or record is not what it must be."""


class ColumnNotFoundError(DataError):
    """A column that the mapping looks for is not in the source."""


class DumpError(DataError):
    """A dump is truncated, corrupt or not of the kind it should be."""


class RecordError(DataError):
    """One line or row breaks its record's schema."""


class SourceNotFoundError(DataError, FileNotFoundError):
    """A file, folder or hub repository cannot be reached."""


class MissingDependencyError(SurfaceConsistencyError, ImportError):
    """An optional library is not installed; the message holds the install line.

    Args:
        feature: What the user asked for.
        library: The library that it needs.
        extra: The extra of this package that installs what the feature needs.
        alone: A distribution that the extra leaves out, installed without its dependencies.
    """

    def __init__(self, feature: str, library: str, extra: str, alone: str | None = None) -> None:
        then = f" && pip install --no-deps {alone}" if alone else ""
        super().__init__(
            f"{feature} needs {library}, which is not installed. "
            f"Install it with: pip install 'surface-consistency[{extra}]'{then}"
        )
        self._given = (feature, library, extra, alone)

    def __reduce__(
        self,
    ) -> tuple[type["MissingDependencyError"], tuple[str, str, str, str | None]]:
        """Say how it is made again where a process hands it to another."""
        return type(self), self._given


class UnsupportedVersionError(MissingDependencyError):
    """An optional library is installed in a version that this package does not work with.

    Args:
        feature: What the user asked for.
        library: The library that it needs.
        installed: The version that is installed.
        allowed: The versions that work, such as ">=0.4.9,<0.5".
    """

    def __init__(self, feature: str, library: str, installed: str, allowed: str) -> None:
        ImportError.__init__(
            self,
            f"{feature} works with {library} {allowed}, and {installed} is installed. "
            f"Install another with: pip install '{library}{allowed}'",
        )
        self._versions = (feature, library, installed, allowed)

    def __reduce__(self) -> tuple[type["UnsupportedVersionError"], tuple[str, str, str, str]]:
        """Say how it is made again where a process hands it to another."""
        return type(self), self._versions


class PluginError(SurfaceConsistencyError, ValueError):
    """A study, analysis, runner or matching rule cannot be found or loaded."""


class RetrievalError(SurfaceConsistencyError, RuntimeError):
    """A store of facts could not be built or asked."""


class RunnerError(SurfaceConsistencyError, RuntimeError):
    """A model could not be loaded or asked."""


class PromptTooLongError(RunnerError, ValueError):
    """A prompt does not fit the model's context."""


class RunnerOutOfMemoryError(RunnerError, MemoryError):
    """The batch was too large for the device; the driver halves it and goes on."""


class UnsupportedModelError(RunnerError):
    """A model whose architecture, or number format, the engine of ablation does not take."""


class RunLogError(SurfaceConsistencyError):
    """The log of a run cannot be used."""


class RunLogLockedError(RunLogError):
    """Another process writes to the same run."""


class RunMismatchError(RunLogError, ValueError):
    """The run was made with other settings than those asked for now."""


class WorkerLostError(SurfaceConsistencyError, RuntimeError):
    """A process that worked for this one was killed."""


class WorkFolderLockedError(SurfaceConsistencyError):
    """Another process builds in the same folder."""


class SurfaceConsistencyWarning(UserWarning):
    """Base of every warning of this package."""


class BackupComponentsWarning(SurfaceConsistencyWarning):
    """Components stand in for each other, so that taking them away one by one tells too little."""


class ContaminationWarning(SurfaceConsistencyWarning):
    """States or databases of an audit answer so alike that one may have been used for another."""


class IncompleteClosureWarning(SurfaceConsistencyWarning):
    """A deletion left triplets that are equivalent to the deleted fact."""


class IncompletePairWarning(SurfaceConsistencyWarning):
    """Redirect instances without the canonical instance of the same fact and template."""


class RepeatedRowsWarning(SurfaceConsistencyWarning):
    """Rows of a frame repeat others in all columns and are counted more than once."""


class TruncatedDumpWarning(SurfaceConsistencyWarning):
    """A dump ended early and the caller asked to keep what came before."""


class TruncatedPromptWarning(SurfaceConsistencyWarning):
    """Prompts lost demonstrations to fit the model's context."""


class UndefinedMetricWarning(SurfaceConsistencyWarning):
    """A value is NaN because its denominator is zero or its input is constant."""


class UnknownCategoryWarning(SurfaceConsistencyWarning):
    """A redirect category that the taxonomy does not hold; it is kept, with type "unknown"."""


class UnscoredWarning(SurfaceConsistencyWarning):
    """Verdicts are missing; the pairs that need them were left out and counted."""
