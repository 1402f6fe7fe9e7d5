#!/usr/bin/env bash
# The 13 models of RedirectQA (arXiv 2604.21882, section 3.1 and appendix C.2) on both wordings.
#
#     bash docs/recipes/redirectqa_models.sh
#
# All settings are as published, 8-bit weights of local models included. Remove the models that you cannot run. OLMo 2 is
# evaluated at its last checkpoint of stage 1, which the model cards name. The ids of OpenSciRef
# follow the naming of its collection, open-sci/open-sci-ref-001-pile; its models contain code, which
# `trust_remote_code` allows. Each command resumes when it is repeated, and a model that fails does
# not stop the others.
set -u

surface-consistency run redirectqa --template both --as-published --model EleutherAI/pythia-410m --label Pythia-410M --out runs/pythia-410m
surface-consistency run redirectqa --template both --as-published --model EleutherAI/pythia-2.8b --label Pythia-2.8B --out runs/pythia-2.8b
surface-consistency run redirectqa --template both --as-published --model EleutherAI/pythia-6.9b --label Pythia-6.9B --out runs/pythia-6.9b
surface-consistency run redirectqa --template both --as-published --model EleutherAI/pythia-12b --label Pythia-12B --out runs/pythia-12b
surface-consistency run redirectqa --template both --as-published --model open-sci/open-sci-ref-v0.01-0.4b-pile-300B-4096 --runner-option trust_remote_code=true --label OpenSciRef-0.4B --out runs/opensciref-0.4b
surface-consistency run redirectqa --template both --as-published --model open-sci/open-sci-ref-v0.01-1.7b-pile-300B-4096 --runner-option trust_remote_code=true --label OpenSciRef-1.7B --out runs/opensciref-1.7b
surface-consistency run redirectqa --template both --as-published --model allenai/OLMo-2-0425-1B@stage1-step1907359-tokens4001B --label OLMo-2-1B --out runs/olmo-2-1b
surface-consistency run redirectqa --template both --as-published --model allenai/OLMo-2-1124-7B@stage1-step928646-tokens3896B --label OLMo-2-7B --out runs/olmo-2-7b
surface-consistency run redirectqa --template both --as-published --model allenai/OLMo-2-1124-13B@stage1-step596057-tokens5001B --label OLMo-2-13B --out runs/olmo-2-13b
surface-consistency run redirectqa --template both --as-published --model allenai/OLMo-2-0325-32B@stage1-step721901-tokens6056B --label OLMo-2-32B --out runs/olmo-2-32b
surface-consistency run redirectqa --template both --as-published --model Qwen/Qwen3-30B-A3B-Instruct-2507 --label Qwen3-30B-A3B-Instruct --out runs/qwen3-30b
surface-consistency run redirectqa --template both --as-published --model meta-llama/Llama-3.1-8B-Instruct --label Llama-3.1-8B-Instruct --out runs/llama-3.1-8b

# Set OPENAI_API_KEY. `text_as_chat` sends each prompt as one turn of a conversation. The paper allows
# this model up to 100 tokens, of which the first line is scored.
surface-consistency run redirectqa --template both --as-published --setting protocol=api --runner openai --runner-option base_url=https://api.openai.com/v1 text_as_chat=true --model gpt-4o-mini-2024-07-18 --label GPT-4o-mini --out runs/gpt-4o-mini

surface-consistency report runs --out runs
