"""Routing (RC-04, RC-26): what the logs say of a bucket, and which mode and tier a run gets. Pure, and no model."""
