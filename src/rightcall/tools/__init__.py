"""Declare tools: from functions, classes and provider definitions to `Tool` and `Toolset`, and check calls against
them."""
