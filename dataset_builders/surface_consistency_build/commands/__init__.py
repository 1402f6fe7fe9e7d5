"""The commands `build` and `count`."""
