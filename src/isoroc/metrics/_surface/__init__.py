"""ROC surfaces and the volumes under them."""
