"""The `datasets` builder classes, one folder per data set."""
