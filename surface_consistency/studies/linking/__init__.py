"""Entity linking: whether a name and a title are said to be one."""
