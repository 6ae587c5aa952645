"""The papers' tasks, tables and claims, and studies on real data. Not part of the installed package."""
