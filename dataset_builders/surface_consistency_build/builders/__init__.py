"""The `datasets` builder classes, a folder a data set."""
