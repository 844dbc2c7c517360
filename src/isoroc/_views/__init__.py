"""What displays and the report show, computed without drawing anything."""
