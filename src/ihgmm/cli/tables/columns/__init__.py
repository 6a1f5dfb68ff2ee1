"""Frames whose columns people named: what is clustered by, what is not, and why."""
