"""The bundled studies: one subpackage per study, with its data, prompts, tables and page."""
