"""Files, seeds, threads, tables: nothing here knows about calibration."""
