"""A fake package `xllamacpp` for tests: the names that rightcall uses, and a server that answers without a model.

The real package is tested where it and the model are installed. This one repeats the last message word by word, or
returns the size of the request (`count`), or ends its process (`die`). A model file with the text `GGUF damaged` cannot
be loaded, `GGUF slow` takes a minute, and with `GGUF tools` the template supports tools. Adapters are listed as models.
"""

from pathlib import Path

PACKAGE = """
import json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingUnixStreamServer
from types import SimpleNamespace


class CommonParams:
    def __init__(self):
        self.model = SimpleNamespace(path="")
        self.cpuparams, self.cpuparams_batch = SimpleNamespace(), SimpleNamespace()
        self.lora_adapters = []


class CommonAdapterLoraInfo:
    def __init__(self, path, scale):
        self.path, self.scale = path, scale


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        models = {"object": "list", "data": [{"id": name} for name in self.server.alias]}
        properties = {"chat_template_caps": {"supports_tools": self.server.has_tools}}
        self.give(json.dumps(properties if self.path == "/props" else models), "application/json")

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = asked["messages"][-1]["content"]
        if said == "die":
            os._exit(7)
        if said == "count":
            said = f"{len(asked['messages'])} messages, {len(asked.get('tools', []))} tools"
        if not asked.get("stream"):
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
            self.give(json.dumps({"object": "chat.completion", "model": "m", "choices": [choice]}), "application/json")
            return
        choices = [{"index": 0, "delta": {"content": word}, "finish_reason": None} for word in said.split(" ")]
        for choice in choices[1:]:
            choice["delta"]["content"] = " " + choice["delta"]["content"]
        choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        chunks = [{"object": "chat.completion.chunk", "model": "m", "choices": [choice]} for choice in choices]
        lines = [f"data: {json.dumps(chunk)}\\n\\n" for chunk in chunks] + ["data: [DONE]\\n\\n"]
        self.give("".join(lines), "text/event-stream")

    def give(self, text, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


class Server:
    def __init__(self, params):
        text = open(params.model.path, "rb").read(100)
        if b"damaged" in text:
            print("0.00.1 E llama_model_load: error loading model: a tensor is missing", file=sys.stderr, flush=True)
            raise RuntimeError("Failed to init server, please check the input params.")
        if b"slow" in text:
            time.sleep(60)
        print("noise on standard output")
        http = ThreadingUnixStreamServer(params.hostnames[0], Answer)
        http.alias, http.has_tools = params.model_alias, b"tools" in text
        http.alias = [*http.alias, *[f"{each.path} x {each.scale}" for each in params.lora_adapters]]
        threading.Thread(target=http.serve_forever, daemon=True).start()
        self.listening_address = "unix://" + params.hostnames[0]
"""

DIES = "import os, signal\nos.kill(os.getpid(), signal.{})\n"
MISSING = "raise ModuleNotFoundError(\"No module named 'xllamacpp'\")\n"


def write_package(folder: Path, source: str = PACKAGE) -> Path:
    """Write the package into the folder, and return the folder."""
    folder.mkdir(exist_ok=True)
    (folder / "xllamacpp.py").write_text(source, "utf-8")
    return folder


def model_file(folder: Path, text: str = "GGUF well") -> str:
    path = folder / "own.gguf"
    path.write_text(text)
    return str(path)
