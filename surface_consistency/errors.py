"""The exceptions and warnings of this package.

```
SurfaceConsistencyError
├── DataError                  a source, column, row or record is not valid
│   ├── ColumnNotFoundError    a column is not in the source
│   ├── RecordError            a line or row violates the schema of its record
│   └── SourceNotFoundError    a file, folder or hub repository cannot be reached
├── MissingDependencyError     an optional library is missing, or its version is not supported
├── PluginError                a study, analysis, runner or rule cannot be found or loaded
├── RunError                   a run folder is locked, damaged or of other settings
└── RunnerError                a model or a store of facts could not be loaded or queried
    └── RunnerOutOfMemoryError the batch was too large for the device

SurfaceConsistencyWarning
├── DataWarning                data, prompts or deletions are not complete or not unique
├── UndefinedMetricWarning     a value is NaN because it is not defined
└── UnscoredWarning            correctness labels are missing, and their pairs were excluded
```

Bad arguments raise the built-in `ValueError` or `TypeError`.
"""

__all__ = [
    "ColumnNotFoundError",
    "DataError",
    "DataWarning",
    "MissingDependencyError",
    "PluginError",
    "RecordError",
    "RunError",
    "RunnerError",
    "RunnerOutOfMemoryError",
    "SourceNotFoundError",
    "SurfaceConsistencyError",
    "SurfaceConsistencyWarning",
    "UndefinedMetricWarning",
    "UnscoredWarning",
]


class SurfaceConsistencyError(Exception):
    """Base of every error class of this package."""


class DataError(SurfaceConsistencyError, ValueError):
    """A source, column, row or record is not valid, or a dump is truncated or corrupt."""


class ColumnNotFoundError(DataError):
    """A column that the mapping names is not in the source."""


class RecordError(DataError):
    """One line or row violates the schema of its record."""


class SourceNotFoundError(DataError, FileNotFoundError):
    """A file, folder or hub repository cannot be reached."""


class MissingDependencyError(SurfaceConsistencyError, ImportError):
    """An optional library is not installed, or its version is not supported.

    Args:
        feature: The feature that was requested.
        library: The library that it needs.
        extra: The extra of this package that installs the library.
        installed: The installed version; None if the library is not installed.
        allowed: The supported versions, such as ">=0.4.9,<0.5", for an installed library.
    """

    def __init__(
        self,
        feature: str,
        library: str,
        extra: str = "",
        installed: str | None = None,
        allowed: str = "",
    ) -> None:
        super().__init__(
            f"{feature} needs {library}, which is not installed. "
            f"Install it with: pip install 'surface-consistency[{extra}]'"
            if installed is None
            else f"{feature} works with {library} {allowed}, and {installed} is installed. "
            f"Install another with: pip install '{library}{allowed}'"
        )
        self._given = (feature, library, extra, installed, allowed)

    def __reduce__(
        self,
    ) -> tuple[type["MissingDependencyError"], tuple[str, str, str, str | None, str]]:
        """Return the class and arguments, from which `pickle` re-creates the error."""
        return type(self), self._given


class PluginError(SurfaceConsistencyError, ValueError):
    """A study, analysis, runner or matching rule cannot be found or loaded."""


class RunError(SurfaceConsistencyError, ValueError):
    """A run or work folder is locked, damaged, or was made with other settings."""


class RunnerError(SurfaceConsistencyError, RuntimeError):
    """A model or a store of facts could not be loaded or queried."""


class RunnerOutOfMemoryError(RunnerError, MemoryError):
    """The batch was too large for the device; the driver halves it and continues."""


class SurfaceConsistencyWarning(UserWarning):
    """Base of every warning class of this package."""


class DataWarning(SurfaceConsistencyWarning):
    """Data, prompts, closures or components are not complete, not unique, or not as expected."""


class UndefinedMetricWarning(SurfaceConsistencyWarning):
    """A value is NaN because its denominator is zero or its input is constant."""


class UnscoredWarning(SurfaceConsistencyWarning):
    """Correctness labels are missing; the pairs that need them were excluded and counted."""
