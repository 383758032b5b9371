"""Generates text with llama.cpp, greedily. JSON on stdin and stdout."""

import json
import sys
from typing import Any

import xllamacpp


def main() -> None:
    job: dict[str, Any] = json.load(sys.stdin)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = job["model"]
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = job["threads"]
    parameters.n_ctx, parameters.n_parallel, parameters.verbosity = 2048, 1, -1
    server = xllamacpp.Server(parameters)
    answers = []
    for prompt in job["prompts"]:
        settings = {"n_predict": job["tokens"], "temperature": 0, "ignore_eos": True, "cache_prompt": False}
        answer = server.handle_completions({"prompt": prompt, **settings})
        answers.append({"text": answer["choices"][0]["text"], **answer["timings"]})
    print(json.dumps({"peer": f"llama.cpp by xllamacpp {xllamacpp.__version__}", "answers": answers}))


if __name__ == "__main__":
    main()
