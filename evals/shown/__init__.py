"""Check that a quoted call never runs and that a real call is never lost, with texts generated for every format."""
