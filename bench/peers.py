"""What a judgment costs here and with other frameworks: the same samples, one server, one table.

A loopback server in this process answers at once, whatever is asked: by the schema, by a call of
the tool, or as text. Each framework has a virtual environment of its own, made on the first run
(`--folder` keeps it for the next), and judges in a process of its own with telemetry switched off.

    python bench/peers.py
    python bench/peers.py --samples 300 --folder ~/.cache/evenhand-peers --peers phoenix deepeval

CPU is that of the process less what it takes to load and to judge one sample; requests are those
that the server saw. What a framework does differs (contract checks, a durable ledger, traces): this
is what its users pay for a judgment, not a contest in doing the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import venv
from pathlib import Path
from typing import Any

from overhead import in_child, sample, write_suite

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PACKAGES = {
    "phoenix": ["arize-phoenix-evals", "openai"],
    "openevals": ["openevals", "openai"],
    "inspect": ["inspect_ai", "openai"],
    "deepeval": ["deepeval", "openai"],
}
QUIET = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "ERROR_REPORTING": "NO",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "OTEL_SDK_DISABLED": "true",
    "DO_NOT_TRACK": "1",
    "OPENAI_API_KEY": "none",
}

HEAD = """
import asyncio, json, os, resource, sys, time
url, number, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rows = [json.loads(line) for line in open(sys.argv[4])]

async def spread(judge, rows):
    source = iter(rows)
    async def worker():
        for row in source:
            await judge(row)
    await asyncio.gather(*(worker() for _ in range(width)))

def report(work):
    work(rows[:1])
    begun, cpu = time.perf_counter(), time.process_time()
    work(rows[1 : number + 1])
    print(json.dumps({
        "wall": time.perf_counter() - begun,
        "cpu": time.process_time() - cpu,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }))
"""
CODE = {
    "phoenix": """
from phoenix.evals import LLM, create_classifier
llm = LLM(provider="openai", model="bench", base_url=url, api_key="none")
judge = create_classifier(
    name="correct", llm=llm, choices={"correct": 1.0, "incorrect": 0.0},
    prompt_template="Is the answer correct?\\nQuestion: {question}\\nAnswer: {answer}",
)
async def one(row):
    await judge.async_evaluate({"question": row["question"], "answer": row["model_output"]})
with asyncio.Runner() as runner:
    report(lambda rows: runner.run(spread(one, rows)))
""",
    "openevals": """
from openai import AsyncOpenAI
from openevals.llm import create_async_llm_as_judge
async def all_of(rows):
    client = AsyncOpenAI(base_url=url, api_key="none")
    judge = create_async_llm_as_judge(
        prompt="Is the answer correct?\\nQuestion: {inputs}\\nAnswer: {outputs}",
        judge=client, model="bench",
    )
    async def one(row):
        await judge(inputs=row["question"], outputs=row["model_output"])
    await spread(one, rows)
with asyncio.Runner() as runner:
    report(lambda rows: runner.run(all_of(rows)))
""",
    "inspect": """
import tempfile
from inspect_ai import Task, eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import solver
@solver
def recorded():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("recorded", state.metadata["answer"])
        return state
    return solve
def work(rows):
    os.environ["OPENAI_BASE_URL"] = url
    samples = [
        Sample(input=r["question"], target="right", metadata={"answer": r["model_output"]})
        for r in rows
    ]
    grader = get_model("openai/bench", responses_api=False)
    task = Task(
        dataset=MemoryDataset(samples), solver=recorded(), scorer=model_graded_qa(model=grader)
    )
    with tempfile.TemporaryDirectory() as folder:
        [log] = evaluate(
            task, model="mockllm/model", log_dir=folder, display="none", max_connections=width,
            max_samples=width,
        )
    assert log.status == "success", log.error
report(work)
""",
    "deepeval": """
from deepeval.metrics import GEval
from deepeval.models import OpenAIModel
from deepeval.test_case import LLMTestCase
try:
    from deepeval.test_case import SingleTurnParams as Params
except ImportError:
    from deepeval.test_case import LLMTestCaseParams as Params
model = OpenAIModel(
    model="gpt-4o-2024-05-13", base_url=url, api_key="none",
    cost_per_input_token=0.0, cost_per_output_token=0.0,
)
async def one(row):
    metric = GEval(
        name="correct", model=model, evaluation_steps=["Is the answer correct?"],
        evaluation_params=[Params.INPUT, Params.ACTUAL_OUTPUT],
    )
    case = LLMTestCase(input=row["question"], actual_output=row["model_output"])
    await metric.a_measure(case, _show_indicator=False)
with asyncio.Runner() as runner:
    report(lambda rows: runner.run(spread(one, rows)))
""",
}


def filled(schema: dict[str, Any], parts: dict[str, Any]) -> Any:
    """A value that a schema allows."""
    if "$ref" in schema:
        return filled(parts[schema["$ref"].rpartition("/")[2]], parts)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return filled(schema["anyOf"][0], parts)
    if schema.get("type") == "object" or "properties" in schema:
        return {name: filled(part, parts) for name, part in schema["properties"].items()}
    if schema.get("type") == "array":
        return []
    simple = {"boolean": True, "integer": 1, "number": 1.0, "null": None}
    return simple.get(str(schema.get("type")), "It is as the question asks.")


def reply(body: dict[str, Any]) -> dict[str, Any]:
    """What the server answers to a chat request."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    form = body.get("response_format") or {}
    if tools := body.get("tools"):
        function = tools[0]["function"]
        schema = function["parameters"]
        arguments = json.dumps(filled(schema, schema.get("$defs", {})))
        call = {"name": function["name"], "arguments": arguments}
        message["tool_calls"] = [{"id": "call", "type": "function", "function": call}]
    elif "json_schema" in form:
        schema = form["json_schema"]["schema"]
        message["content"] = json.dumps(filled(schema, schema.get("$defs", {})))
    else:
        message["content"] = '{"score": 8, "reason": "It is as the question asks."}\nGRADE: C'
    usage = {"prompt_tokens": 300, "completion_tokens": 30, "total_tokens": 330}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    about = {"id": "bench", "object": "chat.completion", "created": 0, "model": "bench"}
    return about | {"choices": [choice], "usage": usage}


class Server:
    """Answers chat requests on loopback, in a thread, and counts them."""

    def __init__(self) -> None:
        self.requests, self._answers = 0, {}  # type: ignore[var-annotated]
        self._ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        self._ready.wait()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, limit=2**20)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await server.serve_forever()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
                body = json.loads(await reader.readexactly(int(size)))
                self.requests += 1
                content = json.dumps(reply(body)).encode()
                begin = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                writer.write(begin + str(len(content)).encode() + b"\r\n\r\n" + content)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def environment(folder: Path, peer: str) -> Path:
    """The Python of a peer's environment, made where it is not there."""
    home = folder / peer
    python = home / "bin" / "python"
    if not (home / "installed").exists():
        print(f"installing {', '.join(PACKAGES[peer])} ...", file=sys.stderr)
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES[peer]], check=True)
        (home / "installed").touch()
    return python


def peer_side(peer: str, python: Path, server: Server, options: argparse.Namespace) -> Any:
    """The figures of one peer, or why there are none."""
    with tempfile.TemporaryDirectory() as name:
        rows = Path(name) / "rows.jsonl"
        rows.write_text("".join(json.dumps(sample(i)) + "\n" for i in range(options.samples + 1)))
        arguments = [server.url, str(options.samples), str(options.width), str(rows)]
        before = server.requests
        done = subprocess.run(
            [python, "-c", HEAD + CODE[peer], *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=name,
            env=os.environ | QUIET | {"HOME": name},
            timeout=options.seconds,
        )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:120]
    figures = json.loads(done.stdout.splitlines()[-1])
    return figures | {"requests": (server.requests - before) / (options.samples + 1)}


def own_sides(samples: int, width: int) -> dict[str, Any]:
    """Evenhand and the bare aiohttp loop, as `bench/overhead.py` measures them."""
    from tests.provider import child

    figures: dict[str, Any] = {}
    with child("fast") as url, tempfile.TemporaryDirectory() as name:
        write_suite(Path(name), "rubric", samples, width, url)
        for side in ("bare", "evenhand"):
            measures = in_child(side, Path(name), url, width, "sqlite:bench.db")
            figures[side] = {
                "cpu": measures["cpu"],
                "wall": measures["wall"],
                "mb": measures["peak_mb"],
                "requests": 1.0,
            }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=300, help="that each peer judges")
    parser.add_argument("--own-samples", type=int, default=5000, help="that Evenhand judges")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=600, help="the most that a peer may take")
    parser.add_argument("--peers", nargs="+", choices=list(PACKAGES), default=list(PACKAGES))
    parser.add_argument("--folder", type=Path, help="where environments are, or are to be made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = (options.folder or Path(name)).expanduser().resolve()
        pythons = {peer: environment(folder, peer) for peer in options.peers}
        sides = own_sides(options.own_samples, options.width)
        numbers = dict.fromkeys(sides, options.own_samples)
        server = Server()
        for peer, python in pythons.items():
            print(f"{peer} ...", file=sys.stderr)
            sides[peer] = peer_side(peer, python, server, options)
            numbers[peer] = options.samples
    own = sides["evenhand"]["cpu"] / numbers["evenhand"]
    print(f"{'':12}{'CPU ms':>9}{'of Evenhand':>13}{'requests':>10}{'peak MB':>9}{'samples':>9}")
    for side, figures in sides.items():
        if isinstance(figures, str):
            print(f"{side:12} no figures: {figures}")
            continue
        cpu = figures["cpu"] / numbers[side]
        print(
            f"{side:12}{1000 * cpu:>9.2f}{cpu / own:>13.1f}{figures['requests']:>10.2f}"
            f"{figures['mb']:>9.0f}{numbers[side]:>9}"
        )


if __name__ == "__main__":
    main()
