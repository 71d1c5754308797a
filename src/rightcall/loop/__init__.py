"""The loop: a model, its tools and a guard, until the task is done."""
