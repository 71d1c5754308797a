"""Histories in the shape of OpenAI's Chat: made fit for a server, and judged by what that server takes."""
