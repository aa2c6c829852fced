"""Serve artifacts over the Open Inference Protocol v2, by KServe's server.

    pip install 'intarsia[serving]'
    intarsia tune zoo:mnist --objective throughput
    python examples/serve.py mnist.intarsia --http_port 8080 --workers 2

The model is at http://localhost:8080/v2/models/mnist/infer, its health at /v2/models/mnist/ready, and metrics
at /metrics. Other options are those of KServe (`--http_port`, `--workers`, `--enable_grpc` ...).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from intarsia.serving.checked_requests import checked_server
from intarsia.serving.kserve_model import IntarsiaModel


def main() -> None:
    """Load the artifacts and start the server."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("artifacts", nargs="+", type=Path)
    parser.add_argument("--streams", type=int, help="requests at the same time in a process")
    parser.add_argument("--threads", type=int, help="threads of each")
    parser.add_argument("--batch", type=int, help="items of requests that are run as one")
    parser.add_argument("--timeout", type=float, help="seconds after which a waiting request is refused")
    options, _ = parser.parse_known_args()
    models = []
    for path in options.artifacts:
        model = IntarsiaModel(
            path.stem,
            path,
            streams=options.streams,
            threads=options.threads,
            batch=options.batch,
            timeout=options.timeout,
        )
        model.load()
        models.append(model)
    checked_server().start(models)


if __name__ == "__main__":
    main()
