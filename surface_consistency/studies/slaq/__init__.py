"""The study SLAQ: `study` plans prompts and pairs, `judges` scores answers."""
