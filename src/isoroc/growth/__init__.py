"""Counts in, BinTree out."""
