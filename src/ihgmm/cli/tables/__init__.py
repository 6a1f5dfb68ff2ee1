"""Tables as users have them: reading, choice of columns, missing cells."""
