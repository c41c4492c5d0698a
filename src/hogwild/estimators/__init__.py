"""Programs as scikit-learn estimators (extra `sklearn`)."""
