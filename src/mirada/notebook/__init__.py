"""mirada as Python's users have it: models that translate one text or many, tables, results that draw themselves."""
