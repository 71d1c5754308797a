"""Run llama.cpp's server on a port of this machine, with xllamacpp:

python llama_server.py MODEL TEMPLATE PORT            with another chat template than the model's
python llama_server.py MODEL - PORT ADAPTER           with the model's template, and an adapter for the model

Runs in its own environment, which has xllamacpp and not rightcall.
"""

import sys
import threading

import xllamacpp


def main(model: str, template: str, port: str, adapter: str = "") -> None:
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"smollm2"}
    if template != "-":
        with open(template, encoding="utf-8") as file:
            params.chat_template = file.read()
    if adapter:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(adapter, 1.0)]
    params.use_jinja = True
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.n_ctx = 8192 if adapter else 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.offline = True
    server = xllamacpp.Server(params)
    print("listens at", server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
