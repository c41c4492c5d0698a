"""`hogwild make-dataset`: data that is made."""
