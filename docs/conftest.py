"""Tests run the examples of the pages, not what is built from them."""

collect_ignore_glob = ["_build/*", "api/*", "auto_examples/*", "conf.py"]
