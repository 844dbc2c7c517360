"""Compiled loops by subject: arrays in, arrays out, no decisions and no GIL."""
