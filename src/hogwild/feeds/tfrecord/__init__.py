"""TFRecord files of examples."""
