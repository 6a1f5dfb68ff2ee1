"""Tables as users have them, in three steps that know nothing of one another.

- ``files`` reads a file, as a frame of columns with names, or as an array;
- ``columns`` chooses the columns of a frame that are clustered by, and
  ``preparation`` makes them ready for a model: missing cells, constants, units;
- ``notes`` says in sentences what was done.

``reading.read_table`` goes through all of them: it takes a
:class:`~ihgmm.cli.tables.request.Request` for data, and returns a
:class:`~ihgmm.cli.tables.table.Table`.
"""
