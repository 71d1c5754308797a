"""`rightcall doctor`: what is wrong with a model server that clients call tools through, shown by asking it."""
