"""ROC surfaces and the volumes under them; `surface` has the public functions."""
