"""Checks of what users give: parameters, data, and what goes with its rows."""
