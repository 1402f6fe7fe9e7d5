"""Results of other tools: any file or table of scores and answers as one long frame."""
