"""Any number of forms of an item."""
