"""Unlearned and edited facts: does the model still answer them correctly, in any form?"""
