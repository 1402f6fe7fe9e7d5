"""Runner for servers with the OpenAI protocol."""
