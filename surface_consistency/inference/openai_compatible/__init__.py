"""Asking a server that speaks the OpenAI protocol: vLLM, SGLang, llama.cpp, hosted models."""

from surface_consistency.inference.openai_compatible.runner import OpenAICompatibleRunner

__all__ = ["OpenAICompatibleRunner"]
