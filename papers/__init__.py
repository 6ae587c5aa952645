"""The papers' tasks, tables and claims, and studies on real data; not installed."""
