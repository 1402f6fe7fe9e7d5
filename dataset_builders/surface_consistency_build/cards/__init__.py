"""Write data sets as folders with a card, and upload them to the hub."""
