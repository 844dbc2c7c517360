"""The ROC surface of any number of classes, and the volume under it."""
