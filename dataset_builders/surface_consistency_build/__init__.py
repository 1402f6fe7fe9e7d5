"""Source for making and publishing the data sets; it is not part of the installed package."""
