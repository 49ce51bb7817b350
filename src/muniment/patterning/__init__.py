"""Patterning (RC-24): data weights from a measured response, offline only. Pure."""
