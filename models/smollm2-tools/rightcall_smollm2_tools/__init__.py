"""One file, smollm2-tools.gguf, an adapter for llama.cpp. `rightcall model pull smollm2-tools` takes it out."""
