"""CTranslate2 behind the simplest server, to be pressed beside `mirada serve` on the same model.

`python -m benchmarks.load TRANSFORMER --beside` starts both in turn, on what `mirada export TRANSFORMER --to
ctranslate2` makes of the model. A thread a connection, a text a request, one translation at a time; what waits is not
put together, which is what the simplest server does. It takes and gives the same JSON as POST /v1/translate.
"""

from __future__ import annotations

import argparse
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import ctranslate2
from tokenizers import Tokenizer

OPTIONS = {"beam_size": "beam_size", "n_best": "num_hypotheses", "max_output_length": "max_decoding_length"}


def serve(folder: Path, port: int, beam: int) -> None:
    """Answer until it is ended; says its address on standard error."""
    translator = ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)
    source, target = (Tokenizer.from_file(str(folder / f"{side}.json")) for side in ("source", "target"))
    between = "" if any(token.startswith("▁") for token in target.get_vocab()) else " "  # pieces of words, or words

    def joined(tokens: list[str]) -> str:
        return between.join(tokens).replace("▁", " ").strip()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self.answer({"status": "ready"})

        def do_POST(self) -> None:
            wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            options = {"beam_size": beam} | {OPTIONS[name]: wanted[name] for name in OPTIONS if name in wanted}
            tokens = source.encode(wanted["text"], add_special_tokens=False).tokens
            options.setdefault("max_decoding_length", 2 * len(tokens) + 10)
            [found] = translator.translate_batch([tokens], **options)
            self.answer({"translations": [{"outputs": [{"text": joined(one)} for one in found.hypotheses]}]})

        def answer(self, values: object) -> None:
            content = json.dumps(values).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    ThreadingHTTPServer.request_queue_size = 2048
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]} ", file=sys.stderr, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--beam", type=int, default=5)
    values = parser.parse_args()
    serve(values.folder, values.port, values.beam)
