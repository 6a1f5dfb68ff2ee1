"""Tables made ready for a model: missing cells, constants, columns in other units."""
