"""One rule per promise, one file per rule: a DataFrame of records in, a DataFrame of findings out."""
